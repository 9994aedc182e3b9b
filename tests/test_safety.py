"""Threads, forks, hash seeds, Ctrl-C, full disks and sudden death."""

import hashlib
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from pickytok import ModelError, Tokenizer, WordCounts


def start(script: str, *args: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def run(script: str, *args: object, **environment: str) -> str:
    """What the script prints; a script that fails or hangs fails the test."""
    process = start(script, *args, **environment)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out


@pytest.fixture(scope="module")
def model_path(picky_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.json"
    picky_tokenizer.save(path)
    return path


# Nothing depends on the process


def test_hash_seeds(stdlib_files: list[Path], tmp_path: Path) -> None:
    script = """
        import sys
        from pickytok import Tokenizer, WordCounts
        out, *files = sys.argv[1:]
        specials = {"<a>", "<b>", "<c>"}
        counts = WordCounts.from_files(files)
        tok = Tokenizer.train_from_counts(
            counts, vocab_size=1500, threshold=0.6, special_tokens=sorted(specials)
        )
        tok.save(out)
        counts.save(out + ".counts")
        text = "a<b> <c><a>b"
        print(tok.encode(text, allowed_special=specials), hash(tok), hash(counts), repr(tok))
    """
    told = set()
    for seed in ("0", "1", "4242", "random"):
        out = run(script, tmp_path / seed, *stdlib_files[:40], PYTHONHASHSEED=seed)
        digest = [hashlib.sha256((tmp_path / (seed + end)).read_bytes()).hexdigest() for end in ("", ".counts")]
        told.add((out.split("]")[0], *digest))
    assert len(told) == 1


def test_import_is_light() -> None:
    """Neither numpy nor the command line's libraries are needed to train and encode."""
    out = run("""
        import sys
        from pickytok import Tokenizer
        tok = Tokenizer.train_from_counts({"ab": 2}, vocab_size=257, threshold=0.9, pretokenizer="none")
        tok.decode(tok.encode("abc"))
        print(sorted({"numpy", "typer", "rich", "click"} & {*sys.modules}))
    """)
    assert out.strip() == "[]"


# Threads


def test_many_python_threads(picky_tokenizer: Tokenizer, held_out_texts: list[str]) -> None:
    texts = [text[:3000] for text in held_out_texts] + ["self." * 50, "é" * 100, ""]
    expected = [picky_tokenizer.encode(text) for text in texts]
    wrong: list[str] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(60):
            i = rng.randrange(len(texts))
            match seed % 4:
                case 0:
                    good = picky_tokenizer.encode(texts[i]) == expected[i]
                case 1:
                    good = picky_tokenizer.encode_batch(texts[i : i + 3]) == expected[i : i + 3]
                case 2:
                    good = picky_tokenizer.encode_to_numpy([texts[i]])[0].tolist() == expected[i]
                case _:
                    good = picky_tokenizer.decode(expected[i]) == texts[i]
            if not good:
                wrong.append(texts[i])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(32)))
    assert wrong == []


def test_training_in_several_threads(stdlib_texts: list[str], tmp_path: Path) -> None:
    def train(i: int) -> Tokenizer:
        return Tokenizer.train_from_iterator(stdlib_texts[:15], vocab_size=800, threshold=0.6, num_threads=1 + i % 2)

    with ThreadPoolExecutor(4) as pool:
        tokenizers = list(pool.map(train, range(8)))
    assert len(set(tokenizers)) == 1


def test_other_threads_run_meanwhile(stdlib_texts: list[str]) -> None:
    """The interpreter is free while the core works."""
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.01):
            ticks += 1

    text = "".join(stdlib_texts)
    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    tok = Tokenizer.train_from_iterator([text], vocab_size=8000, threshold=0.7)
    tok.encode_batch([text[i : i + 100_000] for i in range(0, len(text), 100_000)])
    took = time.perf_counter() - begin
    done.set()
    thread.join()
    assert ticks > took / 0.01 / 10


# Forks


def test_batch_fork_batch(model_path: Path) -> None:
    """`datasets.map(num_proc=2)` after a batch in the parent."""
    out = run(
        """
        import os, signal, sys, time
        from pickytok import Tokenizer, WordCounts
        tok = Tokenizer.load(sys.argv[1])
        texts = ["def encode(self, text): return %d " % i * 40 for i in range(300)]
        expected = tok.encode_batch(texts)
        counts = WordCounts.from_iterator(texts)
        for child in range(4):
            pid = os.fork()
            if pid == 0:
                signal.alarm(30)
                good = tok.encode_batch(texts) == expected
                good &= tok.encode_batch(texts, num_threads=2) == expected
                good &= tok.encode_to_numpy(texts)[0].tolist() == [i for row in expected for i in row]
                good &= tok.decode_batch(expected) == texts
                good &= [tok.encode(text) for text in texts] == expected
                good &= WordCounts.from_iterator(texts, num_threads=2) == counts
                if child == 0:  # a child of the child
                    grandchild = os.fork()
                    if grandchild == 0:
                        signal.alarm(30)
                        os._exit(0 if tok.encode_batch(texts) == expected else 1)
                    good &= os.waitpid(grandchild, 0)[1] == 0
                os._exit(0 if good else 1)
            print(os.waitpid(pid, 0)[1], flush=True)
        assert tok.encode_batch(texts) == expected
        print("parent")
        """,
        model_path,
    )
    assert out.split() == ["0", "0", "0", "0", "parent"]


def test_fork_while_other_threads_encode(model_path: Path) -> None:
    """No lock is held across a fork."""
    out = run(
        """
        import os, signal, sys, threading
        from pickytok import Tokenizer
        tok = Tokenizer.load(sys.argv[1])
        texts = ["word%d other%d " % (i, i * i) * 20 for i in range(200)]
        expected = tok.encode_batch(texts)
        stop = False
        def work(batch):
            while not stop:
                assert (tok.encode_batch(texts) if batch else [tok.encode(text) for text in texts]) == expected
        threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
        for thread in threads:
            thread.start()
        codes = []
        for _ in range(25):
            pid = os.fork()
            if pid == 0:
                signal.alarm(30)
                os._exit(0 if tok.encode_batch(texts) == [tok.encode(text) for text in texts] == expected else 1)
            codes.append(os.waitpid(pid, 0)[1])
        stop = True
        for thread in threads:
            thread.join()
        print(codes)
        """,
        model_path,
    )
    assert out.strip() == str([0] * 25)


def encode_in_worker(args: tuple[Tokenizer, list[str]]) -> list[list[int]]:
    tok, texts = args
    return tok.encode_batch(texts)


def test_pickled_to_other_processes(picky_tokenizer: Tokenizer, held_out_texts: list[str]) -> None:
    expected = picky_tokenizer.encode_batch(held_out_texts)
    with get_context("spawn").Pool(2) as pool:
        rows = pool.map(encode_in_worker, [(picky_tokenizer, [text]) for text in held_out_texts])
    assert [row[0] for row in rows] == expected
    assert pickle.loads(pickle.dumps(picky_tokenizer, protocol=2)) == picky_tokenizer


# Ctrl-C: each of these calls takes ten seconds and more when nobody stops it

PREPARE = """
    import random, signal, sys, time
    from pathlib import Path
    from pickytok import Tokenizer, WordCounts
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = Path(sys.argv[1])
    def letters(n):
        return random.Random(1).randbytes(n).translate(bytes(97 + b % 26 for b in range(256))).decode()
    def model(pretokenizer="none"):
        return Tokenizer.train_from_counts(
            {letters(20_000): 1}, vocab_size=3000, threshold=0.6, pretokenizer=pretokenizer
        )
    def links(name, n):
        for i in range(n):
            (folder / f"{i}-{name}").symlink_to(folder / name)
        return [folder / f"{i}-{name}" for i in range(n)]
    def forever():
        text = letters(10_000)
        while True:
            yield text
"""
RUN = """
    print("ready", flush=True)
    try:
        call()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print("finished", flush=True)
"""
LONG_CALLS = {
    "train_from_counts": "word = letters(30_000_000); call = lambda: Tokenizer.train_from_counts("
    "{word: 1}, vocab_size=2_000_000, threshold=0.7, pretokenizer='none')",
    "train": "(folder / 'a.txt').write_text(letters(30_000_000)); call = lambda: Tokenizer.train("
    "folder / 'a.txt', vocab_size=2_000_000, threshold=0.7, pretokenizer='none')",
    "train_from_iterator": "call = lambda: Tokenizer.train_from_iterator(forever(), vocab_size=300, threshold=0.7)",
    "from_iterator": "call = lambda: WordCounts.from_iterator(forever())",
    "from_files": "(folder / 'a.txt').write_text('some words of text\\n' * 2_000_000); files = links('a.txt', 300); "
    "call = lambda: WordCounts.from_files(files)",
    "from_files, one huge word": "(folder / 'a.txt').write_text('a b' * 20_000_000); files = links('a.txt', 500); "
    "call = lambda: WordCounts.from_files(files, pretokenizer='none', num_threads=1)",
    "merge_files": "WordCounts.from_dict({f'{i:x}': 1 for i in range(300_000)}, pretokenizer='none')"
    ".save(folder / 'a.counts'); files = links('a.counts', 400); "
    "call = lambda: WordCounts.merge_files(files, folder / 'out')",
    "encode": "tok = model(); text = letters(60_000_000); call = lambda: tok.encode(text)",
    "encode, many words": "tok = model('gpt4'); text = letters(150_000_000).replace('z', ' '); "
    "call = lambda: tok.encode(text)",
    "count_tokens": "tok = model(); text = letters(60_000_000); call = lambda: tok.count_tokens(text)",
    "encode_bytes": "tok = model(); text = letters(60_000_000).encode(); call = lambda: tok.encode_bytes(text)",
    "encode_with_offsets": "tok = model(); text = letters(60_000_000); call = lambda: tok.encode_with_offsets(text)",
    "encode_batch": "tok = model(); texts = [letters(1_000_000)] * 100; call = lambda: tok.encode_batch(texts)",
    "encode_batch, one thread": "tok = model(); texts = [letters(1_000_000)] * 100; "
    "call = lambda: tok.encode_batch(texts, num_threads=1)",
    "encode_to_numpy": "tok = model(); texts = [letters(1_000_000)] * 300; call = lambda: tok.encode_to_numpy(texts)",
    "post_removal": "tok = model(); text = letters(60_000_000); call = lambda: tok.encode(text, mode='post_removal')",
    "greedy": "tok = model(); texts = [letters(1_000_000)] * 900; "
    "call = lambda: tok.encode_batch(texts, mode='greedy', num_threads=1)",
    "shortest": "tok = model(); texts = [letters(1_000_000)] * 500; "
    "call = lambda: tok.encode_batch(texts, mode='shortest', num_threads=1)",
}


@pytest.mark.parametrize("name", LONG_CALLS)
def test_ctrl_c(name: str, tmp_path: Path) -> None:
    process = start(textwrap.dedent(PREPARE) + LONG_CALLS[name] + "\n" + textwrap.dedent(RUN), tmp_path)
    assert process.stdout
    try:
        assert process.stdout.readline() == "ready\n", process.communicate()
        time.sleep(0.4)
        begin = time.perf_counter()
        process.send_signal(signal.SIGINT)
        told = process.stdout.readline()
        took = time.perf_counter() - begin
        process.kill()
        _, err = process.communicate()
    finally:
        process.kill()
    assert told == "interrupted\n", err
    assert took < 3  # two seconds are the promise
    assert not (tmp_path / "out").exists()


# Saving is atomic


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """RLIMIT_FSIZE makes every write beyond 4 kB fail, as a full disk would."""
    out = run(
        """
        import resource, signal, sys
        from pathlib import Path
        from pickytok import Tokenizer, WordCounts
        folder = Path(sys.argv[1])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        words = {f"word{i}" * 3: 1 + i % 7 for i in range(3000)}
        small = Tokenizer.train_from_counts({"ab": 2}, vocab_size=257, threshold=0.9, pretokenizer="none")
        large = Tokenizer.train_from_counts(words, vocab_size=900, threshold=0.7, pretokenizer="none")
        few, many = (WordCounts.from_dict(w, pretokenizer="none") for w in ({"ab": 2}, words))
        small.save(folder / "model"); few.save(folder / "counts"); few.save(folder / "merged")
        many.save(folder / "many")
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        for call in (
            lambda: large.save(folder / "model"),
            lambda: many.save(folder / "counts"),
            lambda: WordCounts.merge_files([folder / "many"], folder / "merged"),
        ):
            try:
                call()
            except OSError as error:
                print("refused", str(folder) in str(error))
        print(Tokenizer.load(folder / "model") == small)
        print(WordCounts.load(folder / "counts") == few == WordCounts.load(folder / "merged"))
        """,
        tmp_path,
    )
    assert out.split() == ["refused", "True"] * 3 + ["True", "True"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counts", "many", "merged", "model"]


def test_sudden_death_leaves_a_whole_file(picky_tokenizer: Tokenizer, tiny: Tokenizer, tmp_path: Path) -> None:
    """A process that does nothing but save is killed at random moments."""
    path = tmp_path / "model"
    picky_tokenizer.save(tmp_path / "a")
    tiny.save(tmp_path / "b")
    tiny.save(path)
    rng = random.Random(1)
    for _ in range(8):
        process = start(
            """
            import sys
            from pickytok import Tokenizer
            a, b = Tokenizer.load(sys.argv[1] + "/a"), Tokenizer.load(sys.argv[1] + "/b")
            print("ready", flush=True)
            while True:
                a.save(sys.argv[1] + "/model")
                b.save(sys.argv[1] + "/model")
            """,
            tmp_path,
        )
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.01, 0.1))
        process.kill()
        process.communicate()
        assert Tokenizer.load(path) in (picky_tokenizer, tiny)


def test_a_reader_never_sees_half_a_file(picky_tokenizer: Tokenizer, tiny: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "model"
    tiny.save(path)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            picky_tokenizer.save(path)
            tiny.save(path)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(50):
            try:
                tok = Tokenizer.load(path)
            except ModelError as error:
                pytest.fail(f"half a file: {error}")
            assert tok in (picky_tokenizer, tiny)
    finally:
        done.set()
        thread.join()
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_save_follows_a_link(tiny: Tokenizer, tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    real.write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(real)
    tiny.save(link)
    assert link.is_symlink()
    assert Tokenizer.load(real) == tiny


def test_saved_files_have_the_usual_mode(tiny: Tokenizer, tmp_path: Path) -> None:
    tiny.save(tmp_path / "model")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_counts_saved_while_words_are_added(stdlib_counts: WordCounts, tmp_path: Path) -> None:
    """Values do not change: many threads may save and add the same counts."""

    def work(i: int) -> bool:
        path = tmp_path / str(i)
        stdlib_counts.save(path)
        return WordCounts.load(path) + stdlib_counts == stdlib_counts + stdlib_counts

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))

"""Times pickytok and Hugging Face `tokenizers` side by side: same text, same words, same vocabulary size.

Every measurement is a process of its own, and the contestants take turns, so that neither a warm cache
nor a busy moment of the machine favours one of them. Before anything is timed, the merges at T = 1 must
equal those of `tokenizers`, one for one. Results go to `benches/results/`.

    python benches/compare.py --corpus news.en.zst --megabytes 60

Without a corpus, the sources of Python's standard library serve as a smoke run.
"""

import argparse
import datetime
import io
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from pickytok import Merge, Tokenizer
from pickytok.demo import sources

RESULTS = Path(__file__).parent / "results"
PEER = "tokenizers"
WORD_BYTES = 1_000_000

Pairs: TypeAlias = list[tuple[str, str]]
Trial: TypeAlias = tuple[Callable[[], Any], Callable[[Any], Pairs]]
Contestant: TypeAlias = Callable[[Path, int], Trial]


# What is measured: a contestant prepares itself, and returns how it trains and how to read its merges afterwards.


def pickytok_at(threshold: float) -> Contestant:
    def prepare(text: Path, vocab_size: int) -> Trial:
        def train() -> Tokenizer:
            return Tokenizer.train(text, vocab_size=vocab_size, threshold=threshold, pretokenizer="gpt2")

        return train, lambda tok: [(event.left, event.right) for event in tok.events if isinstance(event, Merge)]

    return prepare


def huggingface(text: Path, vocab_size: int) -> Trial:
    import tokenizers

    byte_level = tokenizers.pre_tokenizers.ByteLevel

    def train() -> tokenizers.Tokenizer:
        tok = tokenizers.Tokenizer(tokenizers.models.BPE())
        tok.pre_tokenizer = byte_level(add_prefix_space=False)
        alphabet = byte_level.alphabet()
        trainer = tokenizers.trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
        tok.train([str(text)], trainer)
        return tok

    return train, lambda tok: [(left, right) for left, right in json.loads(tok.to_str())["model"]["merges"]]


CONTESTANTS: dict[str, Contestant] = {
    "pickytok T=0.9": pickytok_at(0.9),
    "pickytok T=1.0": pickytok_at(1.0),
    PEER: huggingface,
}


def time_training(job: str, text: Path, vocab_size: int, merges: Path | None) -> dict[str, float]:
    train, merges_of = CONTESTANTS[job](text, vocab_size)
    start = time.perf_counter()
    tok = train()
    result = {"seconds": time.perf_counter() - start, "peak_megabytes": peak_megabytes()}
    if merges:
        merges.write_text(json.dumps(merges_of(tok)))
    return result


def peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def time_model(text: Path, vocab_size: int) -> dict[str, float]:
    """How long a model of full size takes to load, the best of five."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        Tokenizer.train(text, vocab_size=vocab_size, threshold=0.9, pretokenizer="gpt2").save(path)
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            Tokenizer.load(path)
            seconds.append(time.perf_counter() - start)
        return {"load_seconds": round(min(seconds), 4), "model_bytes": path.stat().st_size}


def time_long_word() -> dict[str, float]:
    """Training on one word of a megabyte, and encoding it: quadratic code would never end."""
    word = "".join(random.Random(0).choices("abcdefghijklmnopqrstuvwxyz", k=WORD_BYTES))
    start = time.perf_counter()
    tok = Tokenizer.train_from_counts({word: 1}, vocab_size=8192, threshold=0.9, pretokenizer="none")
    trained = time.perf_counter()
    tok.encode(word)
    encoded = time.perf_counter()
    return {"train_seconds": round(trained - start, 3), "encode_seconds": round(encoded - trained, 3)}


# One measurement, in a process of its own


def measure(job: str, text: Path, vocab_size: int, merges: Path | None) -> dict[str, float]:
    match job:
        case "model":
            return time_model(text, vocab_size)
        case "long word":
            return time_long_word()
        case _:
            return time_training(job, text, vocab_size, merges)


def in_a_process(job: str, text: Path, vocab_size: int, merges: Path | None = None) -> dict[str, float]:
    command = [sys.executable, __file__, "--job", job, "--corpus", str(text), "--vocab-size", str(vocab_size)]
    if merges:
        command += ["--merges", str(merges)]
    result: dict[str, float] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return result


# The whole comparison


def read_lines(corpus: Path | None) -> Iterator[str]:
    if corpus is None:
        for path in sources():
            yield from path.read_text(encoding="utf-8", errors="replace").splitlines()
    elif corpus.suffix == ".zst":
        import zstandard

        with corpus.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as stream:
            yield from io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
    else:
        with corpus.open(encoding="utf-8", newline="\n") as file:
            yield from file


def write_text(corpus: Path | None, megabytes: float, text: Path) -> int:
    """Lines without white space at their ends and no empty ones: then a reader of lines sees the words of the whole."""
    size = 0
    with text.open("wb") as file:
        for line in read_lines(corpus):
            if stripped := line.strip():
                size += file.write(f"{stripped}\n".encode())
            if size >= megabytes * 1e6:
                break
    return size


def verify(text: Path, vocab_size: int, folder: Path) -> int:
    """Checks that T = 1 is plain BPE, merge for merge; returns how many merges there are."""
    merges = []
    for job in ("pickytok T=1.0", PEER):
        path = folder / "merges.json"
        in_a_process(job, text, vocab_size, path)
        merges.append(json.loads(path.read_text()))
    ours, theirs = merges
    if ours != theirs:
        place = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(map(len, merges)))
        sys.exit(f"merges differ from number {place} on: {ours[place : place + 1]} and {theirs[place : place + 1]}")
    return len(ours)


def machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return {
        "cpu": names[0].partition(":")[2].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("pickytok", PEER)},
    }


def compare(corpus: Path | None, megabytes: float, vocab_size: int, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = folder / "text"
        size = write_text(corpus, megabytes, text)
        print(f"{size / 1e6:.1f} MB of {corpus.name if corpus else 'Python'}, vocabulary {vocab_size}")
        print(f"verified: {verify(text, vocab_size, folder)} merges at T = 1 equal those of {PEER}")
        runs: dict[str, list[dict[str, float]]] = {job: [] for job in CONTESTANTS}
        for _ in range(repeats):
            for job, results in runs.items():
                results.append(in_a_process(job, text, vocab_size))
        model = in_a_process("model", text, vocab_size)
        long_word = in_a_process("long word", text, vocab_size)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": machine(),
        "corpus": {"name": corpus.name if corpus else "Python's standard library", "bytes": size},
        "vocab_size": vocab_size,
        "train": {job: summarise(results, runs[PEER]) for job, results in runs.items()},
        "model": model,
        "long_word": long_word,
    }


def summarise(results: list[dict[str, float]], peer: list[dict[str, float]]) -> dict[str, Any]:
    """Medians, and the ratios to the peer's run of the same round."""
    ratios = [theirs["seconds"] / ours["seconds"] for ours, theirs in zip(results, peer, strict=True)]
    return {
        "seconds": [round(result["seconds"], 4) for result in results],
        "median_seconds": round(statistics.median(result["seconds"] for result in results), 4),
        "median_peak_megabytes": round(statistics.median(result["peak_megabytes"] for result in results), 1),
        "times_faster": [round(ratio, 3) for ratio in ratios],
        "median_times_faster": round(statistics.median(ratios), 3),
    }


def show(report: dict[str, Any]) -> None:
    print(f"{'training':<16}{'seconds':>10}{'times faster':>14}{'peak MB':>10}")
    for job, row in report["train"].items():
        faster, peak = row["median_times_faster"], row["median_peak_megabytes"]
        print(f"{job:<16}{row['median_seconds']:>10.2f}{faster:>14.2f}{peak:>10.0f}")
    model, word = report["model"], report["long_word"]
    print(f"loading the model: {model['load_seconds'] * 1000:.0f} ms ({model['model_bytes'] / 1e6:.1f} MB)")
    print(f"a word of a megabyte: training {word['train_seconds']:.2f} s, encoding {word['encode_seconds']:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description="Times pickytok against Hugging Face tokenizers.")
    parser.add_argument("--corpus", type=Path, help="text, plain or .zst; default: Python's standard library")
    parser.add_argument("--megabytes", type=float, default=60, help="how much of it (60)")
    parser.add_argument("--vocab-size", type=int, default=32_768)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--merges", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        print(json.dumps(measure(args.job, args.corpus, args.vocab_size, args.merges)))
        return
    report = compare(args.corpus, args.megabytes, args.vocab_size, args.repeats)
    show(report)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{report['date']}.json"
    path.write_text(json.dumps(report, indent=2) + "\n")
    print(f"wrote {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


if __name__ == "__main__":
    main()

"""Word counts: a commutative monoid that lives in memory, in dicts and in readable, checked files."""

import json
import pickle
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pickytok import PreTokenizer, WordCounts, unicode_version

HARD_WORDS = [
    "\t",
    "\n",
    "\r\n",
    "\\",
    "\\n",
    "\\t\\\\",
    "▁",
    "▁▁a",
    " ",
    "é",
    "\u0000",
    "\u2028",
    "🙂",
    '"',
    "#",
    "{",
    "0\t1",
]


@pytest.fixture(scope="module")
def hard() -> WordCounts:
    return WordCounts.from_dict({word: 1 + i * i for i, word in enumerate(HARD_WORDS)}, pretokenizer="none")


def random_counts(rng: random.Random) -> WordCounts:
    words = {"".join(rng.choices("ab\n\té", k=rng.randint(1, 3))): rng.randint(1, 2**40) for _ in range(6)}
    return WordCounts.from_dict(words, pretokenizer="none")


# Ways in


def test_dict_iterator_and_files_agree(tmp_path: Path, stdlib_texts: list[str]) -> None:
    texts = stdlib_texts[:30]
    for name in ("gpt2", "gpt4", "gpt4o", "whitespace", r"regex:\w+"):
        counted = Counter(word for text in texts for word in PreTokenizer(name).split(text))
        files = []
        for i, text in enumerate(texts):
            files.append(tmp_path / f"{i}.txt")
            files[-1].write_bytes(text.encode())
        from_dict = WordCounts.from_dict(counted, pretokenizer=name)
        assert from_dict == WordCounts.from_iterator(texts, pretokenizer=name)
        assert from_dict == WordCounts.from_iterator((text for text in texts), pretokenizer=name, num_threads=1)
        assert from_dict == WordCounts.from_files(files, pretokenizer=name)
        assert from_dict == WordCounts.from_files(files, pretokenizer=name, num_threads=1)
        assert dict(from_dict.items()) == dict(counted)
        assert from_dict.total == counted.total()
        assert len(from_dict) == len(counted)


def test_a_path_alone_is_one_file(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a b a")
    assert WordCounts.from_files(file) == WordCounts.from_files([file]) == WordCounts.from_files(str(file))
    assert WordCounts.from_files([file, file]) == WordCounts.from_files(file) + WordCounts.from_files(file)


def test_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"ab\ncd\r\nab\n\nef")
    expected = WordCounts.from_dict({"ab": 2, "cd": 1, "ef": 1}, pretokenizer="none")
    assert WordCounts.from_files(file, pretokenizer="none", lines=True) == expected
    assert WordCounts.from_iterator(["ab\ncd\r\nab\n\nef"], pretokenizer="none", lines=True) == expected


def test_mapping_access(hard: WordCounts) -> None:
    assert hard["\n"] == 2
    assert "\n" in hard
    assert "nowhere" not in hard
    assert 7 not in hard
    with pytest.raises(KeyError, match="nowhere"):
        hard["nowhere"]
    assert (len(hard), hard.pretokenizer) == (len(HARD_WORDS), "none")
    assert hard.total == sum(1 + i * i for i in range(len(HARD_WORDS)))
    assert [word for word, _ in hard.items()] == sorted(HARD_WORDS, key=str.encode)


# Adding up


def test_addition_is_commutative_and_associative() -> None:
    rng = random.Random(1)
    for _ in range(100):
        a, b, c = (random_counts(rng) for _ in range(3))
        assert a + b == b + a
        assert (a + b) + c == a + (b + c)
        assert hash(a + b) == hash(b + a)
        expected = Counter(dict(a.items())) + Counter(dict(b.items()))
        assert dict((a + b).items()) == dict(expected)
        assert (a + b).total == a.total + b.total


def test_addition_leaves_its_operands() -> None:
    a = WordCounts.from_dict({"x": 1}, pretokenizer="none")
    b = WordCounts.from_dict({"x": 2, "y": 3}, pretokenizer="none")
    assert dict((a + b).items()) == {"x": 3, "y": 3}
    assert (a["x"], b["x"], "y" in a) == (1, 2, False)


def test_counts_of_different_words_do_not_add_up(tmp_path: Path) -> None:
    a = WordCounts.from_dict({"x": 1}, pretokenizer="gpt2")
    b = WordCounts.from_dict({"x": 1}, pretokenizer="gpt4")
    with pytest.raises(ValueError, match=r"(?s)gpt2.*gpt4|gpt4.*gpt2"):
        a + b
    a.save(tmp_path / "a")
    b.save(tmp_path / "b")
    with pytest.raises(ValueError, match=r"(?s)gpt2.*gpt4|gpt4.*gpt2"):
        WordCounts.merge_files([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert not (tmp_path / "c").exists()
    assert a != b
    with pytest.raises(TypeError):
        a + {"x": 1}  # type: ignore[operator]


def test_a_sum_beyond_the_limit_is_an_error(tmp_path: Path) -> None:
    a = WordCounts.from_dict({"x": 2**63 - 1}, pretokenizer="none")
    assert (a.total, a["x"]) == (2**63 - 1, 2**63 - 1)
    b = WordCounts.from_dict({"y": 1}, pretokenizer="none")
    with pytest.raises(ValueError, match=str(2**63 - 1)):
        a + b
    a.save(tmp_path / "a")
    b.save(tmp_path / "b")
    with pytest.raises(ValueError, match=str(2**63 - 1)):
        WordCounts.merge_files([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert not (tmp_path / "c").exists()


# Files


def test_the_file_is_what_it_says(hard: WordCounts, tmp_path: Path) -> None:
    hard.save(tmp_path / "hard.counts")
    first, *lines, last, end = (tmp_path / "hard.counts").read_bytes().split(b"\n")
    assert end == b""
    header = json.loads(first)
    assert header == {
        "format": "pickytok-counts",
        "version": 1,
        "unicode": unicode_version,
        "pretokenizer": "none",
    }
    assert json.loads(last) == {"words": len(hard), "total": hard.total}
    escapes = {"\\\\": "\\", "\\n": "\n", "\\r": "\r", "\\t": "\t"}
    words: dict[str, int] = {}
    for line in lines:
        count, _, escaped = line.decode().partition("\t")
        assert "\t" not in escaped
        assert "\r" not in escaped
        word = ""
        while escaped:
            step = 2 if escaped[0] == "\\" else 1
            word += escapes.get(escaped[:step], escaped[:step])
            escaped = escaped[step:]
        words[word] = int(count)
    assert list(words.items()) == hard.items()


def test_files_come_back(hard: WordCounts, stdlib_counts: WordCounts, tmp_path: Path) -> None:
    for counts in (hard, stdlib_counts):
        counts.save(tmp_path / "a")
        loaded = WordCounts.load(tmp_path / "a")
        assert loaded == counts
        assert loaded.items() == counts.items()
        assert (loaded.total, loaded.pretokenizer) == (counts.total, counts.pretokenizer)
        loaded.save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_pattern_with_hard_characters_comes_back(tmp_path: Path) -> None:
    name = 'regex:"\\w+\\\\"|[\té▁]'
    counts = WordCounts.from_iterator(['"ab\\"\t'], pretokenizer=name)
    counts.save(tmp_path / "a")
    assert WordCounts.load(tmp_path / "a") == counts
    assert WordCounts.load(tmp_path / "a").pretokenizer == name


def test_merged_files_are_the_sum(tmp_path: Path) -> None:
    rng = random.Random(2)
    for n in (1, 2, 3, 9):
        shards = [random_counts(rng) for _ in range(n)]
        paths = [tmp_path / f"{i}.counts" for i in range(n)]
        for shard, path in zip(shards, paths, strict=True):
            shard.save(path)
        total = shards[0]
        for shard in shards[1:]:
            total += shard
        total.save(tmp_path / "expected")
        for order in (paths, paths[::-1]):
            WordCounts.merge_files(order, tmp_path / "merged")
            assert (tmp_path / "merged").read_bytes() == (tmp_path / "expected").read_bytes()
    WordCounts.merge_files([tmp_path / "merged", paths[0]], tmp_path / "merged")  # an input may be the output
    assert WordCounts.load(tmp_path / "merged") == total + shards[0]


Lines = list[bytes]


def put(at: int, line: bytes) -> Callable[[Lines], Lines]:
    """Replaces the line with index `at`."""
    return lambda lines: [line if i == at % len(lines) else old for i, old in enumerate(lines)]


def put_header(**changes: object) -> Callable[[Lines], Lines]:
    return lambda lines: [json.dumps(json.loads(lines[0]) | changes).encode(), *lines[1:]]


# What happened to the file, and the line (from 1) where a reader can first know it. The footer is line 8.
DAMAGE: dict[str, tuple[Callable[[Lines], Lines], int | None]] = {
    "empty": (lambda _: [], 1),
    "only a header": (lambda lines: lines[:1], None),
    "no footer": (lambda lines: lines[:-1], None),
    "only a footer": (lambda lines: lines[-1:], 1),
    "cut in a line": (lambda lines: [*lines[:4], b"1"], None),
    "unsorted": (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], 4),
    "duplicate": (lambda lines: [*lines[:3], lines[2], *lines[3:]], 4),
    "a word after the footer": (lambda lines: [*lines, lines[3]], 9),
    "two footers": (lambda lines: [*lines, lines[-1]], 9),
    "garbage": (put(3, b"\x00\x01garbage"), 4),
    "not UTF-8": (put(3, b"5\tc\xff"), 4),
    "no tab": (put(3, b"5"), 4),
    "no count": (put(3, b"\tc"), 4),
    "zero": (put(3, b"0\tc"), 4),
    "negative": (put(3, b"-5\tc"), 4),
    "plus": (put(3, b"+5\tc"), 4),
    "leading zero": (put(3, b"05\tc"), 4),
    "fraction": (put(3, b"5.5\tc"), 4),
    "above 2^63 - 1": (put(3, b"9223372036854775808\tc"), 4),
    "giant": (put(3, b"9" * 400 + b"\tc"), 4),
    "empty word": (put(3, b"5\t"), 4),
    "unknown escape": (put(3, b"5\tc\\x"), 4),
    "half an escape": (put(3, b"5\tc\\"), 4),
    "raw tab": (put(3, b"3\tc\tb"), 4),
    "raw carriage return": (put(3, b"3\tc\r"), 4),
    "line ends of another system": (lambda lines: [line + b"\r" for line in lines], None),
    "empty line": (put(3, b""), 4),
    "no header": (lambda lines: lines[1:], 1),
    "another format": (put_header(format="pickytok-model"), 1),
    "a later version": (put_header(version=2), 1),
    "a version that is no number": (put_header(version="1"), 1),
    "unknown pre-tokenizer": (put_header(pretokenizer="nine"), 1),
    "broken pattern": (put_header(pretokenizer="regex:("), 1),
    "unknown field": (put_header(extra=1), 1),
    "deep nesting": (put(0, b"[" * 100_000), 1),
    "wrong number of words": (put(-1, b'{"words":7,"total":21}'), 8),
    "wrong total": (put(-1, b'{"words":6,"total":22}'), 8),
    "garbage at the end": (put(-1, b"{words}"), 8),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_refused(damage: str, tmp_path: Path) -> None:
    words = {"a": 1, "b": 2, "bb": 3, "zzz": 4, "zzzz": 5, "é": 6}
    good, bad = tmp_path / "good.counts", tmp_path / "bad.counts"
    WordCounts.from_dict(words, pretokenizer="none").save(good)
    change, line = DAMAGE[damage]
    bad.write_bytes(b"".join(row + b"\n" for row in change(good.read_bytes().split(b"\n")[:-1])))
    assert bad.read_bytes() != good.read_bytes()
    for read in (lambda: WordCounts.load(bad), lambda: WordCounts.merge_files([good, bad], tmp_path / "out.counts")):
        with pytest.raises(ValueError, match="bad") as caught:
            read()
        assert str(bad) in str(caught.value)
        if line is not None:
            assert f"line {line}" in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.counts", "good.counts"]


def test_every_truncation_is_refused(hard: WordCounts, tmp_path: Path) -> None:
    hard.save(tmp_path / "a")
    data = (tmp_path / "a").read_bytes()
    for end in range(len(data) - 1):
        (tmp_path / "a").write_bytes(data[:end])
        with pytest.raises(ValueError, match=str(tmp_path / "a")):
            WordCounts.load(tmp_path / "a")


def test_random_damage_is_refused_or_read_whole(hard: WordCounts, tmp_path: Path) -> None:
    hard.save(tmp_path / "a")
    data = (tmp_path / "a").read_bytes()
    rng = random.Random(3)
    refused = 0
    for _ in range(2000):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(broken))
            broken[at : at + rng.randint(0, 2)] = rng.choice([rng.randbytes(1), b"\n", b"\t", b"\\", b"9", b""])
        (tmp_path / "a").write_bytes(broken)
        try:
            counts = WordCounts.load(tmp_path / "a")
        except ValueError:
            refused += 1
            continue
        assert counts.total == sum(n for _, n in counts.items())
        counts.save(tmp_path / "b")
        assert WordCounts.load(tmp_path / "b") == counts
    assert refused > 1000


# Values


def test_equality_hash_pickle_repr(hard: WordCounts) -> None:
    again = WordCounts.from_dict(dict(reversed(hard.items())), pretokenizer="none")
    assert again == hard
    assert hash(again) == hash(hard)
    assert pickle.loads(pickle.dumps(hard)) == hard
    assert hard != WordCounts.from_dict({"a": 1}, pretokenizer="none")
    assert hard != dict(hard.items())
    assert "\n" not in repr(hard)
    assert "WordCounts" in repr(hard)
    assert str(len(hard)) in repr(hard)


def test_progress_of_counting(stdlib_files: list[Path]) -> None:
    told: list[tuple[str, int, int]] = []
    WordCounts.from_files(stdlib_files, progress=lambda *args: told.append(args))
    assert {stage for stage, _, _ in told} == {"count"}
    assert told[-1][1] == told[-1][2] == sum(file.stat().st_size for file in stdlib_files)

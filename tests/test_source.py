"""Files against their contents: formats, compression, line ends, invalid UTF-8, and blocks that cut no word."""

import gzip
import json
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from pickytok import PreTokenizer, WordCounts

NAMES = ["gpt2", "gpt4", "gpt4o", "whitespace"]
Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def documents(*paths: Path | str, lines: bool = False, errors: str = "strict") -> list[str]:
    """The documents of the files, in no order; an empty one has no words."""
    counts = WordCounts.from_files(paths, pretokenizer="none", lines=lines, errors=errors)  # type: ignore[arg-type]
    return sorted(Counter(dict(counts.items())).elements())


def expected(pretokenizer: str, *texts: str) -> dict[str, int]:
    split = PreTokenizer(pretokenizer).split
    return dict(Counter(word for text in texts for word in split(text)))


def big_text(size: int, seed: int) -> str:
    """Text of all sorts, with stretches that hold no place to cut."""
    rng = random.Random(seed)
    words = [
        "word",
        " It's",
        "世界。",
        "今天",
        "\r\n",
        "\n\n",
        "  ",
        "12345",
        " Straße",
        "\u0301",
        "!?",
        "\u3000",
        "'S",
        "/",
    ]
    parts: list[str] = []
    length = 0
    while length < size:
        few = rng.sample(words, rng.choice([1, 2, len(words)]))
        parts += rng.choices(few, k=rng.choice([10, 1000, 100_000]))
        length = sum(map(len, parts))
    return "".join(parts)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_blocks_cut_no_word(write: Write, name: str, seed: int) -> None:
    text = big_text(5_000_000, seed)
    path = write("big.txt", text)
    for threads in [1, 3]:
        counts = WordCounts.from_files([path], pretokenizer=name, num_threads=threads)
        assert dict(counts.items()) == expected(name, text)
    counts = WordCounts.from_files([path], pretokenizer=name, lines=True)
    assert dict(counts.items()) == expected(name, *(line.removesuffix("\r") for line in text.split("\n")))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("unit", [" ", "\n", "x", "中", "1", "!", "\u0301", "'", "x,"])
def test_blocks_without_a_cut_grow(write: Write, name: str, unit: str) -> None:
    text = unit * 2_500_000 + "x"
    counts = WordCounts.from_files([write("one.txt", text)], pretokenizer=name)
    assert dict(counts.items()) == expected(name, text)


@pytest.mark.parametrize("name", [*NAMES, "none"])
def test_replace_does_not_depend_on_blocks(write: Write, name: str) -> None:
    rng = random.Random(3)
    bad = [b"\xff", b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\x80"]
    pieces = [b"word", b" ", b"\n", "é".encode(), *bad]
    content = b"".join(rng.choices(pieces, k=1_200_000))
    path = write("bad.txt", content)
    text = content.decode(errors="replace")
    counts = WordCounts.from_files([path], pretokenizer=name, errors="replace")
    assert dict(counts.items()) == expected(name, text)
    with pytest.raises(ValueError, match="invalid UTF-8"):
        WordCounts.from_files([path], pretokenizer=name)


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_invalid_byte_is_named(write: Write, size: int) -> None:
    path = write("bad.txt", b"ab " * size + b"\xc3\xa9\xe9 " + b"cd " * size)
    with pytest.raises(ValueError, match=rf'bad\.txt.* 0xe9 at position {3 * size + 2};.*errors="replace"'):
        WordCounts.from_files([path], num_threads=2)
    counts = WordCounts.from_files([path], errors="replace")
    assert dict(counts.items()) == {"ab": 1, " ab": size - 1, " é": 1, "\ufffd": 1, " cd": size, " ": 1}


def test_truncated_character_at_the_end(write: Write) -> None:
    path = write("cut.txt", "a中".encode()[:-1])
    with pytest.raises(ValueError, match="0xe4 at position 1"):
        documents(path)
    assert documents(path, errors="replace") == ["a\ufffd"]


def test_documents(write: Write) -> None:
    text = write("a.txt", "one\n two")
    more = write("no_suffix", "\nthree\n")
    assert documents(text, more) == ["\nthree\n", "one\n two"]
    assert documents(text, text) == ["one\n two"] * 2
    assert documents(write("empty.txt", "")) == []
    # A document never spans two files.
    assert WordCounts.from_files([text, more]) == WordCounts.from_iterator(["one\n two", "\nthree\n"])


def test_lines(write: Write) -> None:
    path = write("a.txt", "one\r\ntwo\n\n\r\nthree\rfour\r\r\n five\x85\u2028six\r")
    assert documents(path, lines=True) == [" five\x85\u2028six\r", "one", "three\rfour\r", "two"]
    assert documents(write("b.txt", "\n\n"), lines=True) == []


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "JSONL"])
def test_records(write: Write, suffix: str) -> None:
    records = ["plain", "lines\nin it", 'é中😀\ud83d\ude00 "quoted" \\ \u2028', "", "x" * 3_000_000]
    lines = [json.dumps({"id": [1, {"text": "no"}], "text": text}) for text in records]
    lines += ["", " \t\r", '"bare"', '  {"text" : "spaced"}  \r']
    path = write(f"a.{suffix}", "\n".join(lines))
    whole = [text.encode("utf-16", "surrogatepass").decode("utf-16") for text in records if text]
    for flag in [False, True]:
        assert documents(path, lines=flag) == sorted([*whole, "bare", "spaced"])


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ("text", '"text"'),
        ("[1]", r'"\[1\]"'),
        ("{}", "missing field `text`"),
        ('{"text": null}', "null"),
        ('{"text": ["a"]}', "sequence"),
        ('{"text": "a"', "EOF"),
        ('{"text": "a"} 1', "trailing"),
        ('"a\tb"', "control character"),
        (r'"\ud800"', "escape"),
    ],
)
def test_bad_record_is_named(write: Write, record: str, found: str) -> None:
    good = '{"text": "good"}\n'
    for before in [2, 150_000]:
        path = write("a.jsonl", good * before + "\n" + record + "\n" + good * 10)
        with pytest.raises(ValueError, match=rf"a\.jsonl: line {before + 2}: .*{found}"):
            documents(path)


def test_invalid_utf8_in_records(write: Write) -> None:
    path = write("a.jsonl", b'"one"\n{"text": "t\xffwo"}\n')
    with pytest.raises(ValueError, match="0xff at position 17"):
        documents(path)
    assert documents(path, errors="replace") == ["one", "t\ufffdwo"]


def test_compressed(write: Write) -> None:
    text = big_text(1_500_000, 4)
    half = len(text) // 2
    parts = [text[:half].encode(), text[half:].encode()]
    long = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=29, enable_ldm=True)
    )
    files = {
        "a.gz": gzip.compress(text.encode()),
        "members.txt.gz": b"".join(map(gzip.compress, parts)),
        "a.zst": zstandard.compress(text.encode()),
        "frames.txt.zst": b"".join(map(zstandard.compress, parts)),
        "long.zst": long.compress(text.encode()),
        "a.jsonl.gz": gzip.compress(json.dumps(text).encode()),
        "a.ndjson.zst": zstandard.compress(json.dumps({"text": text}).encode()),
    }
    plain = WordCounts.from_files([write("plain.txt", text)])
    for name, content in files.items():
        assert WordCounts.from_files([write(name, content)]) == plain, name
    everything = WordCounts.from_files([write(name, content) for name, content in files.items()], num_threads=3)
    assert dict(everything.items()) == {word: count * len(files) for word, count in plain.items()}


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_broken_compression(write: Write, suffix: str) -> None:
    content = big_text(200_000, 5).encode()
    compress = gzip.compress if suffix == "gz" else zstandard.ZstdCompressor(write_checksum=True).compress
    packed = compress(content)
    middle = len(packed) // 2
    flipped = packed[:middle] + bytes([packed[middle] ^ 0xFF]) + packed[middle + 1 :]
    for broken in [packed[:-1], packed[:middle], packed[:3], flipped, packed + b"junk", b"not compressed at all"]:
        with pytest.raises(OSError, match=rf"broken\.{suffix}"):
            WordCounts.from_files([write(f"broken.{suffix}", broken)])


def test_bad_paths(tmp_path: Path, write: Write) -> None:
    good = write("good.txt", "text")
    with pytest.raises(ValueError, match="no input files"):
        WordCounts.from_files([])
    with pytest.raises(FileNotFoundError, match="missing"):
        WordCounts.from_files([good, tmp_path / "missing"])
    with pytest.raises(OSError, match="directory"):
        WordCounts.from_files([good, tmp_path])
    with pytest.raises(ValueError, match='"ignore"'):
        WordCounts.from_files([good], errors="ignore")  # type: ignore[arg-type]


def test_unreadable_path(write: Write) -> None:
    path = write("secret.txt", "text")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # The superuser can read everything, so the test must be somebody else.
    try:
        with pytest.raises(PermissionError, match=r"secret\.txt"):
            WordCounts.from_files([path])
    finally:
        os.seteuid(user)


def test_path_with_spaces_and_letters(write: Write) -> None:
    assert documents(write("ä b 中.txt", "text")) == ["text"]


@pytest.mark.parametrize("name", ["pipe", "pipe.jsonl"])
def test_named_pipe(tmp_path: Path, name: str) -> None:
    pipe = tmp_path / name
    os.mkfifo(pipe)
    text = "some words " * 300_000
    content = json.dumps(text) if name.endswith("jsonl") else text
    writer = threading.Thread(target=pipe.write_text, args=(content,), daemon=True)
    writer.start()
    counts = WordCounts.from_files([pipe])
    writer.join()
    assert counts == WordCounts.from_iterator([text])


@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
def test_standard_input(path: str) -> None:
    program = f"from pickytok import WordCounts; print(dict(WordCounts.from_files([{path!r}]).items()))"
    text = "some words " * 300_000
    run = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, text=True, check=True)
    assert run.stdout == str(dict(WordCounts.from_iterator([text]).items())) + "\n"

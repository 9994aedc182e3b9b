"""Bad input: the right kind of exception, and a message that names the value, the limit and the place."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pickytok import ModelError, PreTokenizer, Tokenizer, WordCounts

WORDS = {"ab": 5, "abc": 2}
WHITESPACE_WORDS = {"▁ab": 5, "▁abc": 2}


def train(words: Any = None, **options: Any) -> Tokenizer:
    defaults: dict[str, Any] = {"vocab_size": 300, "threshold": 0.9, "pretokenizer": "none"}
    return Tokenizer.train_from_counts(WORDS if words is None else words, **(defaults | options))


def train_chars(words: Any = None, **options: Any) -> Tokenizer:
    return train(words, **({"unit": "char", "coverage": 1.0} | options))


# Arguments of training: what is given, and what the message must hold


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"threshold": 0.0}, ["threshold", "0", "1"]),
        ({"threshold": -0.1}, ["threshold", "-0.1"]),
        ({"threshold": 1.0000001}, ["threshold", "1.0000001"]),
        ({"threshold": float("nan")}, ["threshold", "NaN"]),
        ({"threshold": float("inf")}, ["threshold", "inf"]),
        ({"vocab_size": 255}, ["vocab_size", "255", "256"]),
        ({"vocab_size": 257, "special_tokens": ["<s>", "</s>"]}, ["vocab_size", "257", "258", "256", "2"]),
        ({"vocab_size": 0}, ["vocab_size", "0", "1"]),
        ({"vocab_size": -1}, ["vocab_size", "-1"]),
        ({"vocab_size": 2**32}, ["vocab_size", str(2**32)]),
        ({"vocab_size": 10**30}, ["vocab_size", str(10**30)]),
        ({"vocab_size": -(10**30)}, ["vocab_size", str(-(10**30))]),
        ({"min_frequency": 0}, ["min_frequency", "0", "1"]),
        ({"min_frequency": -3}, ["min_frequency", "-3"]),
        ({"min_frequency": 10**30}, ["min_frequency", str(10**30)]),
        ({"max_token_length": 0}, ["max_token_length", "0", "1"]),
        ({"max_token_length": -3}, ["max_token_length", "-3"]),
        ({"special_tokens": ["<s>", ""]}, ["special", "empty"]),
        ({"special_tokens": ["<s>", "x", "<s>"]}, ["special", "<s>"]),
        ({"special_tokens": ["a"]}, ["special", "a", "alphabet"]),
        ({"special_tokens": ["Ġ"]}, ["special", "Ġ", "alphabet"]),
        ({"special_tokens": ["\ud800"]}, ["surrogate"]),
        ({"unit": "word"}, ["unit", "word", "byte", "char"]),
        ({"preset": "papers"}, ["preset", "papers", "paper"]),
        ({"pretokenizer": "gpt5"}, ["gpt5", "gpt4"]),
        ({"pretokenizer": "whitespace"}, ["whitespace", "char"]),
        ({"pretokenizer": "regex:("}, ["regex", "("]),
        ({"coverage": 0.9}, ["coverage", "byte", "char"]),
    ],
    ids=str,
)
def test_options(options: dict[str, Any], named: list[str]) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        train(**options)
    assert not isinstance(caught.value, ModelError)
    assert [word for word in named if word.lower() not in str(caught.value).lower()] == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"coverage": 0.0}, ["coverage", "0", "1"]),
        ({"coverage": -1.0}, ["coverage", "-1"]),
        ({"coverage": 1.5}, ["coverage", "1.5"]),
        ({"coverage": float("nan")}, ["coverage", "NaN"]),
        ({"special_tokens": ["c"]}, ["special", "c", "alphabet"]),
        ({"vocab_size": 3}, ["vocab_size", "3", "4"]),
    ],
    ids=str,
)
def test_options_of_chars(options: dict[str, Any], named: list[str]) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        train_chars(**options)
    assert [word for word in named if word.lower() not in str(caught.value).lower()] == []


def test_what_is_just_allowed() -> None:
    assert train(vocab_size=256).vocab_size == 256
    assert train(vocab_size=258, special_tokens=["<s>", "</s>"]).vocab_size == 258
    assert train_chars(vocab_size=4).vocab_size == 4  # <unk>, a, b, c
    assert train(threshold=5e-324).threshold == 5e-324
    assert train_chars(coverage=5e-324).alphabet == ["a"]
    assert train_chars(special_tokens=["z"]).token_to_id("z") == 1


@pytest.mark.parametrize(
    "options",
    [{"threshold": "0.9"}, {"threshold": None}, {"vocab_size": 300.0}, {"special_tokens": [5]}, {"vocabsize": 3}],
    ids=str,
)
def test_types(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        train(**options)


def test_special_tokens_are_not_one_string() -> None:
    """A string is an iterable of strings: a trap, for training as for `allowed_special`."""
    with pytest.raises((TypeError, ValueError), match="special_tokens"):
        train(special_tokens="<s>")
    with pytest.raises((TypeError, ValueError), match="allowed_special"):
        train(special_tokens=["<s>"]).encode("<s>", allowed_special="<s>")


# Words with counts


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ({"ab": 0}, ["ab", "0"]),
        ({"ab": 3, "cd": -7}, ["cd", "-7"]),
        ({"": 3}, ["empty"]),
        ({"ab": 2**63}, [str(2**63 - 1)]),
        ({"ab": 2**62, "cd": 2**62}, [str(2**63 - 1)]),
        ({"ab": 10**30}, [str(2**63 - 1)]),
        ({"a\ud800": 3}, ["surrogate"]),
    ],
    ids=str,
)
def test_words(words: dict[str, int], named: list[str]) -> None:
    for call in (lambda: train(words), lambda: WordCounts.from_dict(words, pretokenizer="none")):
        with pytest.raises(ValueError, match=r"\w") as caught:
            call()
        assert [word for word in named if word not in str(caught.value)] == []


@pytest.mark.parametrize("options", [{"unit": "byte"}, {"unit": "char"}, {"unit": "char", "coverage": 1.0}], ids=str)
def test_words_that_are_too_long_together(options: dict[str, Any]) -> None:
    """The total of counts fits, the number of positions does not."""
    with pytest.raises(ValueError, match=str(2**63 - 1)):
        train({"abcdefg": 2**61}, **options)


def test_words_of_the_wrong_type() -> None:
    wrong: list[Any] = [{b"ab": 3}, {"ab": 1.5}, {"ab": "3"}, {"ab": None}, ["ab"], 5, None]
    for words in wrong:
        with pytest.raises(TypeError):
            Tokenizer.train_from_counts(words, vocab_size=300, threshold=0.9, pretokenizer="none")


def test_the_pretokenizer_of_words() -> None:
    with pytest.raises(TypeError, match="pretokenizer"):  # as any argument that is missing
        Tokenizer.train_from_counts(WORDS, vocab_size=300, threshold=0.9)
    counts = WordCounts.from_dict(WORDS, pretokenizer="gpt2")
    with pytest.raises(ValueError, match=r"(?s)gpt2.*gpt4|gpt4.*gpt2"):
        Tokenizer.train_from_counts(counts, vocab_size=300, threshold=0.9, pretokenizer="gpt4")
    assert (
        Tokenizer.train_from_counts(counts, vocab_size=300, threshold=0.9, pretokenizer="gpt2").pretokenizer == "gpt2"
    )
    with pytest.raises(ValueError, match="nine"):
        WordCounts.from_dict(WORDS, pretokenizer="nine")
    with pytest.raises(ValueError, match="char"):
        train(WHITESPACE_WORDS, pretokenizer="whitespace", unit="byte")


# An empty corpus


def test_nothing_to_train_on(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    blank = tmp_path / "blank.txt"
    blank.write_bytes(b" \n\t\n")
    calls: list[Callable[[], Tokenizer]] = [
        lambda: train({}),
        lambda: Tokenizer.train(empty, vocab_size=300, threshold=0.9),
        lambda: Tokenizer.train([blank], vocab_size=300, threshold=0.9, preset="paper"),
        lambda: Tokenizer.train_from_iterator([], vocab_size=300, threshold=0.9),
        lambda: Tokenizer.train_from_iterator(["", ""], vocab_size=300, threshold=0.9),
        lambda: Tokenizer.train_from_iterator(iter([" "]), vocab_size=300, threshold=0.9, preset="paper"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"empty|no words"):
            call()


def test_no_input_files() -> None:
    with pytest.raises(ValueError, match="no input files"):
        Tokenizer.train([], vocab_size=300, threshold=0.9)
    with pytest.raises(ValueError, match="no input files"):
        WordCounts.from_files([])
    with pytest.raises(ValueError, match="no count files"):
        WordCounts.merge_files([], "never.counts")


# Files


def readers(path: Path) -> list[Callable[[], object]]:
    return [
        lambda: Tokenizer.train([path], vocab_size=300, threshold=0.9),
        lambda: WordCounts.from_files(path),
        lambda: WordCounts.load(path),
        lambda: WordCounts.merge_files([path], path.parent / "out.counts"),
        lambda: Tokenizer.load(path),
    ]


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.txt"
    for read in readers(path):
        with pytest.raises(FileNotFoundError, match=re.escape(str(path))) as caught:
            read()
        assert caught.value.errno


def test_a_missing_file_among_others_is_found_before_the_work(tmp_path: Path, stdlib_files: list[Path]) -> None:
    missing = tmp_path / "nowhere.txt"
    with pytest.raises(FileNotFoundError, match=re.escape(str(missing))):
        WordCounts.from_files([*stdlib_files, missing])


def test_directory(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    for read in readers(path):
        with pytest.raises(OSError, match=re.escape(str(path))):
            read()


def test_a_loop_of_links(tmp_path: Path) -> None:
    path = tmp_path / "loop"
    path.symlink_to(path)
    for read in readers(path):
        with pytest.raises(OSError, match=re.escape(str(path))):
            read()


AS_NOBODY = """
import os, sys
from pathlib import Path
from pickytok import Tokenizer, WordCounts
folder = Path(sys.argv[1])
tok = Tokenizer.train_from_counts({"ab": 1}, vocab_size=257, threshold=0.9, pretokenizer="none")
counts = WordCounts.from_dict({"ab": 1}, pretokenizer="none")
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
secret = folder / "secret"
for name, call in {
    "train": lambda: Tokenizer.train(secret, vocab_size=300, threshold=0.9),
    "count": lambda: WordCounts.from_files([secret]),
    "load": lambda: Tokenizer.load(secret),
    "load counts": lambda: WordCounts.load(secret),
    "save": lambda: tok.save(folder / "new"),
    "save counts": lambda: counts.save(folder / "new"),
    "merge": lambda: WordCounts.merge_files([folder / "good"], folder / "new"),
}.items():
    try:
        call()
    except PermissionError as error:
        print(name, "refused", str(folder) in str(error))
    except BaseException as error:
        print(name, type(error), error)
    else:
        print(name, "went through")
"""


def test_no_permission() -> None:
    """Root may do everything, so a child that is not root tries."""
    with tempfile.TemporaryDirectory() as name:  # tmp_path lies where only its owner may look
        top = Path(name)
        top.chmod(0o755)
        folder = top / "closed"
        folder.mkdir()
        (folder / "secret").write_text("a b c")
        (folder / "secret").chmod(0)
        WordCounts.from_dict({"ab": 1}, pretokenizer="none").save(folder / "good")
        (folder / "good").chmod(0o444)
        folder.chmod(0o555)
        run = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(folder)], capture_output=True, text=True, timeout=60, check=False
        )
        names = ["train", "count", "load", "load counts", "save", "save counts", "merge"]
        assert run.stdout.splitlines() == [f"{name} refused True" for name in names], run.stderr
        assert sorted(path.name for path in folder.iterdir()) == ["good", "secret"]
        folder.chmod(0o755)


def test_invalid_utf8_in_files(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes("é b\n".encode() * 1000 + b"ab\xffcd")
    for read in (readers(path)[0], readers(path)[1]):
        with pytest.raises(ValueError, match=r"(?i)utf-8") as caught:
            read()
        assert str(path) in str(caught.value)
        assert re.search(r"\b5002\b", str(caught.value))  # the byte's offset
        assert "replace" in str(caught.value)
    counts = WordCounts.from_files(path, pretokenizer="none", errors="replace")
    assert counts.items() == [("é b\n" * 1000 + "ab\ufffdcd", 1)]
    assert Tokenizer.train(path, vocab_size=300, threshold=0.9, errors="replace").vocab_size > 256
    lines = WordCounts.from_files(path, pretokenizer="none", errors="replace", lines=True)
    assert dict(lines.items()) == {"é b": 1000, "ab\ufffdcd": 1}


def test_text_that_ends_inside_a_character(tmp_path: Path) -> None:
    path = tmp_path / "cut.txt"
    path.write_bytes("日本".encode()[:-1])
    with pytest.raises(ValueError, match=r"(?s)cut\.txt.*\b3\b"):
        WordCounts.from_files(path)
    assert WordCounts.from_files(path, pretokenizer="none", errors="replace").items() == [("日\ufffd", 1)]


@pytest.mark.parametrize("errors", ["ignore", "Strict", "", "surrogateescape"])
def test_unknown_errors(errors: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a")
    with pytest.raises(ValueError, match="errors") as caught:
        WordCounts.from_files(path, errors=errors)
    assert "strict" in str(caught.value)
    assert "replace" in str(caught.value)


def test_lone_surrogates(tiny: Tokenizer, tmp_path: Path) -> None:
    text = "ab\ud800c"
    calls: list[Callable[[], object]] = [
        lambda: tiny.encode(text),
        lambda: tiny.count_tokens(text),
        lambda: tiny.tokenize(text),
        lambda: tiny.trace(text),
        lambda: tiny.encode_with_offsets(text),
        lambda: tiny.encode_batch(["fine", text]),
        lambda: tiny.encode_to_numpy(["fine", text]),
        lambda: PreTokenizer("gpt4").split(text),
        lambda: WordCounts.from_iterator(["fine", text]),
        lambda: Tokenizer.train_from_iterator(["fine", text], vocab_size=300, threshold=0.9),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="surrogate") as caught:
            call()
        assert re.search(r"\b2\b", str(caught.value))  # where it stands
    assert WordCounts.from_iterator([text], pretokenizer="none", errors="replace").items() == [("ab\ufffdc", 1)]
    tok = Tokenizer.train_from_iterator(
        [text], vocab_size=300, threshold=0.9, pretokenizer="none", errors="replace", unit="char", coverage=1.0
    )
    assert "\ufffd" in tok.alphabet


# Encoding and decoding


def test_unknown_mode(tiny: Tokenizer) -> None:
    wrong: Any = "fastest"
    calls: list[Callable[[], object]] = [
        lambda: tiny.encode("a", mode=wrong),
        lambda: tiny.encode_bytes(b"a", mode=wrong),
        lambda: tiny.encode_batch(["a"], mode=wrong),
        lambda: tiny.encode_to_numpy([], mode=wrong),
        lambda: tiny.tokenize("a", mode=wrong),
        lambda: tiny.count_tokens("a", mode=wrong),
        lambda: tiny.encode_with_offsets("a", mode=wrong),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="fastest") as caught:
            call()
        assert all(mode in str(caught.value) for mode in ("events", "post_removal", "greedy", "shortest"))


def test_unknown_special_token(tiny: Tokenizer) -> None:
    for allowed in ({"<pad>"}, ["<s>", "<pad>"]):
        with pytest.raises(ValueError, match="<pad>"):
            tiny.encode("a", allowed_special=allowed)
        with pytest.raises(ValueError, match="<pad>"):
            tiny.encode_batch(["a"], allowed_special=allowed)


@pytest.mark.parametrize("wrong", [262, 10**6, -1, 2**32, 2**32 + 1, -(2**31), 10**30], ids=str)
def test_ids_out_of_range(tiny: Tokenizer, wrong: int) -> None:
    assert tiny.vocab_size == 262
    calls: list[Callable[[], object]] = [
        lambda: tiny.id_to_token(wrong),
        lambda: tiny.id_to_bytes(wrong),
        lambda: tiny.decode([5, wrong]),
        lambda: tiny.decode_bytes([5, wrong]),
        lambda: tiny.decode_batch([[5], [5, wrong]]),
    ]
    for call in calls:
        with pytest.raises(KeyError) as caught:
            call()
        assert str(wrong) in str(caught.value)
        assert "261" in str(caught.value)


def test_arrays_of_ids(tiny: Tokenizer) -> None:
    right: Any = [np.array([5, 261], dtype) for dtype in ("uint32", "int64", "int32", "uint16")]
    for array in right:
        assert tiny.decode(array) == tiny.decode([5, 261])
    wrong: Any = [np.array([5, 262], "uint32"), np.array([5, -1]), np.array([5, 2**40]), np.array([5, 262], "int32")]
    for array in wrong:
        with pytest.raises(KeyError, match=str(array[1])):
            tiny.decode(array)
    wrong = [[1.5], "12", np.array([1.5]), None, 5]
    for ids in wrong:
        with pytest.raises(TypeError):
            tiny.decode(ids)


def test_unknown_token(tiny: Tokenizer) -> None:
    for token in ("nowhere", "", "Ġab", "<S>"):  # Ġab was removed
        with pytest.raises(KeyError, match=f'"{re.escape(token)}"'):
            tiny.token_to_id(token)


@pytest.mark.parametrize("errors", ["strictly", "", "surrogateescape"])
def test_unknown_errors_of_decode(tiny: Tokenizer, errors: Any) -> None:
    with pytest.raises(ValueError, match="errors"):
        tiny.decode([5], errors=errors)


@pytest.mark.parametrize("wrong", [0, -1, 10**30], ids=str)
def test_num_threads(tiny: Tokenizer, wrong: int, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a b")
    calls: list[Callable[[], object]] = [
        lambda: tiny.encode_batch(["a"], num_threads=wrong),
        lambda: tiny.encode_to_numpy(["a"], num_threads=wrong),
        lambda: tiny.decode_batch([[5]], num_threads=wrong),
        lambda: WordCounts.from_files(path, num_threads=wrong),
        lambda: WordCounts.from_iterator(["a"], num_threads=wrong),
        lambda: Tokenizer.train(path, vocab_size=300, threshold=0.9, num_threads=wrong),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"num_threads.*{wrong}|{wrong}.*num_threads"):
            call()


def test_texts_of_the_wrong_type(tiny: Tokenizer) -> None:
    wrong: list[Any] = [b"ab", 5, None, ["ab"]]
    for text in wrong:
        with pytest.raises(TypeError):
            tiny.encode(text)
        if not isinstance(text, bytes):  # a batch takes bytes too
            with pytest.raises(TypeError):
                tiny.encode_batch(["fine", text])
        with pytest.raises(TypeError):
            WordCounts.from_iterator(["fine", text])
    with pytest.raises(TypeError):
        tiny.encode_bytes("ab")  # type: ignore[arg-type]


def test_one_string_is_not_a_batch(tiny: Tokenizer) -> None:
    """It would be a batch of letters, which nobody means."""
    calls: list[Callable[[], object]] = [
        lambda: tiny.encode_batch("abc"),
        lambda: tiny.encode_to_numpy("abc"),
        lambda: WordCounts.from_iterator("abc"),
        lambda: Tokenizer.train_from_iterator("abc", vocab_size=300, threshold=0.9),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()


def test_trace_of_several_words(char_tokenizer: Tokenizer, byte_tokenizer: Tokenizer) -> None:
    for tok in (char_tokenizer, byte_tokenizer):
        for text in ("two words", ""):
            with pytest.raises(ValueError, match="word"):
                tok.trace(text)


def test_bytes_that_are_no_text_with_chars(tiny_char: Tokenizer) -> None:
    """Characters cannot be seen in them: an error that names the byte, or `<unk>`, but never a crash."""
    try:
        ids = tiny_char.encode_bytes(b"ab\xff")
    except ValueError as error:
        if not re.search(r"\b2\b", str(error)):
            raise
    else:
        assert tiny_char.token_to_id("<unk>") in ids


# Patterns


@pytest.mark.parametrize(
    "name", ["", "GPT4", "gpt-4", "regex", "regex:", "regex:(", "regex:[z-a]", "regex:a{5,2}", r"regex:\p{Nope}"]
)
def test_broken_pretokenizers(name: str) -> None:
    for make in (lambda: PreTokenizer(name), lambda: WordCounts.from_iterator(["a"], pretokenizer=name)):
        with pytest.raises(ValueError, match=r"\w") as caught:
            make()
        assert name.removeprefix("regex:") in str(caught.value)


def test_a_pattern_that_backtracks_without_end_does_not_crash() -> None:
    """Look-around needs a backtracking engine; it may give up, with an error, but not take the process with it."""
    try:
        words = PreTokenizer(r"regex:(?=(a+)+b)\w|\w").split("a" * 40)
    except ValueError as error:
        if not str(error):
            raise
    else:
        assert words == ["a"] * 40


# Saving


@pytest.mark.parametrize("kind", ["model", "counts", "merged counts"])
def test_places_that_cannot_be_written(kind: str, tiny: Tokenizer, tmp_path: Path) -> None:
    counts = WordCounts.from_dict(WORDS, pretokenizer="none")
    counts.save(tmp_path / "good.counts")
    save: Callable[[Path], None]
    match kind:
        case "model":
            save = tiny.save
        case "counts":
            save = counts.save
        case _:
            save = lambda path: WordCounts.merge_files([tmp_path / "good.counts"], path)  # noqa: E731
    file = tmp_path / "file"
    file.write_text("old")
    folder = tmp_path / "folder"
    folder.mkdir()
    for path, error in [
        (tmp_path / "missing" / "model", FileNotFoundError),
        (file / "model", NotADirectoryError),
        (folder, OSError),
        (Path(f"/proc/{os.getpid()}/no-such-place/model"), OSError),
        (tmp_path / ("x" * 300), OSError),
    ]:
        with pytest.raises(error) as caught:
            save(path)
        assert str(path) in str(caught.value) or str(path.parent) in str(caught.value)
    assert file.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "good.counts"]
    assert list(folder.iterdir()) == []

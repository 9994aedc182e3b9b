"""The model file: equal training gives equal bytes, and a reader believes nothing that it cannot check."""

import copy
import json
import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pickytok
import pytest
from pickytok import Merge, ModelError, Remove, Tokenizer, WordCounts

FIELDS = [
    "format", "version", "unicode", "unit", "pretokenizer", "threshold", "vocab_size", "min_frequency",
    "max_token_length", "coverage", "special_tokens", "alphabet", "stop", "events",
]  # fmt: skip
File = dict[str, Any]


def saved(tok: Tokenizer, folder: Path) -> str:
    path = folder / "model.json"
    tok.save(path)
    return path.read_bytes().decode()


def load(text: str | bytes, folder: Path) -> Tokenizer:
    path = folder / "changed.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return Tokenizer.load(path)


# What is in it


def test_fields(tiny: Tokenizer, tiny_char: Tokenizer, tmp_path: Path) -> None:
    file: File = json.loads(saved(tiny, tmp_path))
    events = file.pop("events")
    assert file == {
        "format": "pickytok-model",
        "version": 1,
        "unicode": pickytok.unicode_version,
        "unit": "byte",
        "pretokenizer": "none",
        "threshold": 0.6,
        "vocab_size": 270,
        "min_frequency": 1,
        "max_token_length": None,
        "coverage": None,
        "special_tokens": ["<s>", "<s>a"],
        "alphabet": None,
        "stop": "exhausted",
    }
    assert events[:2] == [["+", "a", "b", 16], ["+", "ab", "c", 9]]
    assert events[4] == ["-", "Ġab", ["Ġ", "ab"], 3, 3]
    assert len(events) == len(tiny.events)

    file = json.loads(saved(tiny_char, tmp_path))
    assert sorted(file) == sorted(FIELDS)
    assert (file["unit"], file["coverage"], file["alphabet"]) == ("char", 1.0, ["a", "b", "c", "é", "▁"])
    assert file["special_tokens"] == ["<unk>", "<s>"]


def test_layout(byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Small fields first; one event a line, of integers and strings only; at most 60 bytes an event."""
    text = saved(byte_tokenizer, tmp_path)
    file: File = json.loads(text)
    assert list(file)[-1] == "events"
    rows = [line.strip().rstrip(",") for line in text.split("\n")]
    assert [json.loads(row) for row in rows if row.startswith(('["+"', '["-"'))] == file["events"]
    for event, row in zip(byte_tokenizer.events, file["events"], strict=True):
        match event:
            case Merge(left, right, _, count):
                assert row == ["+", left, right, count]
            case Remove(token, parts, absorbed, frequency):
                assert row == ["-", token, [*parts], absorbed, frequency]
    assert {type(value) for row in file["events"] for value in row} == {str, int, list}
    assert len(text.encode()) / len(byte_tokenizer.events) <= 60


@pytest.mark.parametrize("number", [0.1 + 0.2, 0.9, 2 / 3, 1e-9, 1.0, 5e-324])
def test_decimals_are_short_and_exact(number: float, tmp_path: Path) -> None:
    tok = Tokenizer.train_from_counts(
        {"ab": 5}, vocab_size=5, threshold=number, unit="char", pretokenizer="none", coverage=number
    )
    text = saved(tok, tmp_path)
    for field in ("threshold", "coverage"):
        found = re.search(rf'"{field}"\s*:\s*([^,\s]+)', text)
        assert found
        assert float(found[1]) == number
        assert len(found[1]) <= len(repr(number))
    assert Tokenizer.load(tmp_path / "model.json") == tok
    assert Tokenizer.load(tmp_path / "model.json").threshold == number


def test_nothing_in_it_depends_on_the_run(stdlib_counts: WordCounts, tmp_path: Path) -> None:
    counts_again = WordCounts.from_dict(dict(reversed(stdlib_counts.items())), pretokenizer="gpt4")
    (tmp_path / "elsewhere").mkdir()
    first = saved(Tokenizer.train_from_counts(stdlib_counts, vocab_size=1000, threshold=0.8), tmp_path)
    second = saved(
        Tokenizer.train_from_counts(counts_again, vocab_size=1000, threshold=0.8, progress=lambda *_: None),
        tmp_path / "elsewhere",
    )
    assert first == second
    header = first[: first.index('"events"')]
    assert str(tmp_path) not in header
    assert pickytok.__version__ not in header


# There and back


def test_saved_and_loaded_are_equal(
    byte_tokenizer: Tokenizer, picky_tokenizer: Tokenizer, char_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    text = "Kentucky could <s> self.assertEqual(x) é 日本 "
    for tok in (byte_tokenizer, picky_tokenizer, char_tokenizer):
        first = saved(tok, tmp_path)
        loaded = Tokenizer.load(tmp_path / "model.json")
        assert loaded == tok
        assert hash(loaded) == hash(tok)
        assert loaded.events == tok.events
        assert (loaded.vocab, loaded.removed, loaded.stop_reason) == (tok.vocab, tok.removed, tok.stop_reason)
        assert (loaded.unit, loaded.pretokenizer, loaded.threshold) == (tok.unit, tok.pretokenizer, tok.threshold)
        assert (loaded.coverage, loaded.min_frequency) == (tok.coverage, tok.min_frequency)
        assert (loaded.max_token_length, loaded.special_tokens) == (tok.max_token_length, tok.special_tokens)
        assert loaded.encode(text) == tok.encode(text)
        assert saved(loaded, tmp_path) == first
        assert load(json.dumps(json.loads(first)), tmp_path) == tok  # the layout is not part of the meaning


def test_hard_names_survive(tmp_path: Path) -> None:
    tok = Tokenizer.train_from_counts(
        {'"\\\n\té\u2028\u0000🙂': 5},
        vocab_size=30,
        threshold=0.9,
        unit="char",
        pretokenizer='regex:"\\w+\\\\"|[\té▁]',
        coverage=1.0,
        special_tokens=['""', "\\n\n", "\u2028\u2029", "🙂🙂"],
    )
    saved(tok, tmp_path)
    loaded = Tokenizer.load(tmp_path / "model.json")
    assert loaded == tok
    assert (loaded.special_tokens, loaded.pretokenizer) == (tok.special_tokens, tok.pretokenizer)
    assert loaded.vocab == tok.vocab


def test_equality_hash_pickle_repr(tiny: Tokenizer, tiny_char: Tokenizer) -> None:
    words = {"é": 2, " abab": 3, "ab": 1, "abc": 9}
    again = Tokenizer.train_from_counts(
        words, vocab_size=270, threshold=0.6, pretokenizer="none", special_tokens=["<s>", "<s>a"]
    )
    assert again == tiny
    assert hash(again) == hash(tiny)
    assert len({again, tiny, tiny_char}) == 2
    other = Tokenizer.train_from_counts(
        words, vocab_size=271, threshold=0.6, pretokenizer="none", special_tokens=["<s>", "<s>a"]
    )
    assert other != tiny  # the same tokens, another target
    assert tiny != "tiny"
    for tok in (tiny, tiny_char):
        assert pickle.loads(pickle.dumps(tok)) == tok
        assert copy.deepcopy(tok) == tok
        assert "\n" not in repr(tok)
        assert repr(tok).startswith("Tokenizer")
        assert str(tok.vocab_size) in repr(tok)


# Damage: what was done, and the place that the message must name: a field, an event, or (for what is not even of the
# right type) a line and a column.
LINE = r"|line \d+ column \d+"


def put(field: str, value: object) -> tuple[Callable[[File], object], str]:
    place = {"special_tokens": "special.token", "pretokenizer": "pre-?tokenizer"}.get(field, field)
    return lambda file: file.update({field: value}), place + LINE


def put_event(i: int, *event: object) -> tuple[Callable[[File], object], str]:
    return lambda file: file["events"].__setitem__(i, list(event)), rf"event {i}\b" + LINE


def drop_event(i: int, place: str) -> tuple[Callable[[File], object], str]:
    return lambda file: file["events"].pop(i), place


def insert_event(i: int, *event: object) -> tuple[Callable[[File], object], str]:
    return lambda file: file["events"].insert(i, list(event)), rf"event {i}\b"


DAMAGE: dict[str, tuple[Callable[[File], object], str]] = {
    # tiny: 0 +a b, 1 +ab c, 2 +Ġ ab, 3 +Ġab ab, 4 -Ġab, 5 -ab, 6 +Ã ©, 7 +a b
    "another format": put("format", "pickytok-counts"),
    "a later version": put("version", 2),
    "version zero": put("version", 0),
    "version in words": put("version", "1"),
    "unknown unit": put("unit", "word"),
    "a unit that is no string": put("unit", 5),
    "unknown pre-tokenizer": put("pretokenizer", "nine"),
    "broken pattern": put("pretokenizer", "regex:("),
    "bytes of whitespace words": put("pretokenizer", "whitespace"),
    "threshold 0": put("threshold", 0),
    "threshold above 1": put("threshold", 1.0000000001),
    "negative threshold": put("threshold", -0.5),
    "threshold in words": put("threshold", "0.6"),
    "no threshold": put("threshold", None),
    "size below the alphabet": put("vocab_size", 257),
    "negative size": put("vocab_size", -1),
    "size that is no integer": put("vocab_size", 270.5),
    "giant size": put("vocab_size", 10**30),
    "min_frequency 0": put("min_frequency", 0),
    "giant min_frequency": put("min_frequency", 2**70),
    "max_token_length 0": put("max_token_length", 0),
    "coverage of bytes": put("coverage", 0.5),
    "alphabet of bytes": put("alphabet", ["a"]),
    "special tokens that are no list": put("special_tokens", "<s>"),
    "empty special token": put("special_tokens", ["<s>", ""]),
    "duplicate special token": put("special_tokens", ["<s>", "<s>"]),
    "special token in the alphabet": put("special_tokens", ["<s>", "a"]),
    "unknown stop": put("stop", "bored"),
    "stop at a size that is not reached": put("stop", "vocab_size"),
    "events that are no list": put("events", {}),
    "no events": put("events", None),
    "unknown field": put("comment", "hello"),
    "an event that is no list": (lambda file: file["events"].__setitem__(1, "+"), LINE[1:]),
    "an empty event": put_event(1),
    "an unknown kind of event": put_event(1, "*", "ab", "c", 9),
    "a merge with too little": put_event(1, "+", "ab", "c"),
    "a merge with too much": put_event(1, "+", "ab", "c", 9, 9),
    "a merge of a number": put_event(1, "+", "ab", 5, 9),
    "a merge of nothing": put_event(1, "+", "ab", "", 9),
    "a merge of an unknown token": put_event(1, "+", "abx", "c", 9),
    "a merge of a character that is no byte": put_event(1, "+", "ab", "日", 9),
    "a merge of a token that comes later": put_event(0, "+", "ab", "c", 9),
    "a merge of a special token": put_event(1, "+", "<s>", "c", 9),
    "a merge of a removed token": put_event(6, "+", "ab", "c", 2),
    "no merge performed": put_event(1, "+", "ab", "c", 0),
    "a negative count": put_event(1, "+", "ab", "c", -9),
    "a count that is no integer": put_event(1, "+", "ab", "c", 9.5),
    "a giant count": put_event(1, "+", "ab", "c", 10**40),
    # A pair is gone once merged: it comes back only after an event that makes one of its two tokens again.
    "a merge twice": insert_event(1, "+", "a", "b", 16),
    "a merge twice, later": insert_event(2, "+", "ab", "c", 9),
    "a removal twice": insert_event(5, "-", "Ġab", ["Ġ", "ab"], 3, 3),
    "a removal of an alphabet token": insert_event(1, "-", "a", ["a"], 16, 16),
    "a removal of a special token": insert_event(1, "-", "<s>", ["<", "s", ">"], 16, 16),
    "a removal of an unknown token": put_event(4, "-", "xyz", ["x", "y", "z"], 3, 3),
    "a removal of a bystander": insert_event(4, "-", "abc", ["ab", "c"], 3, 3),
    "a removal of what was just made": insert_event(4, "-", "Ġabab", ["Ġab", "ab"], 3, 3),
    "a removal first of all": insert_event(0, "-", "ab", ["a", "b"], 3, 3),
    "parts that do not spell the token": put_event(4, "-", "Ġab", ["Ġ", "abc"], 3, 3),
    "parts in another order": put_event(4, "-", "Ġab", ["ab", "Ġ"], 3, 3),
    "parts that are not live": put_event(5, "-", "ab", ["ab"], 3, 4),
    "parts that go down too far": put_event(4, "-", "Ġab", ["Ġ", "a", "b"], 3, 3),
    "no parts": put_event(4, "-", "Ġab", [], 3, 3),
    "parts that are no list": put_event(4, "-", "Ġab", "Ġab", 3, 3),
    "an empty part": put_event(4, "-", "Ġab", ["Ġ", "", "ab"], 3, 3),
    "absorbed more than there was": put_event(5, "-", "ab", ["a", "b"], 3, 2),
    "absorbed other than merged": put_event(5, "-", "ab", ["a", "b"], 4, 4),
    "nothing absorbed": put_event(5, "-", "ab", ["a", "b"], 0, 4),
    "out of nothing": put_event(5, "-", "ab", ["a", "b"], 3, 0),
    "a share below the threshold": put_event(5, "-", "ab", ["a", "b"], 3, 6),
    "a share of a giant": put_event(5, "-", "ab", ["a", "b"], 3, 10**40),
    "x2 removed before x1": (
        lambda file: file["events"].__setitem__(slice(4, 6), [file["events"][5], file["events"][4]]),
        r"event [45]\b",
    ),
    "the first event lost": drop_event(0, r"event 0\b"),
    "the removal of a token that comes back lost": drop_event(5, r"event 6\b"),
    "all backwards": (lambda file: file["events"].reverse(), r"event \d"),
    "deep nesting in an event": (
        lambda file: file["events"].__setitem__(1, json.loads("[" * 90 + "]" * 90)),
        LINE[1:],
    ),
}
for missing in FIELDS:
    DAMAGE[f"no field {missing}"] = (lambda file, field=missing: file.pop(field), missing)  # type: ignore[misc]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_refused(damage: str, tiny: Tokenizer, tmp_path: Path) -> None:
    file: File = json.loads(saved(tiny, tmp_path))
    change, place = DAMAGE[damage]
    change(file)
    with pytest.raises(ModelError, match=place) as caught:
        load(json.dumps(file, ensure_ascii=False), tmp_path)
    assert "changed.json" in str(caught.value)


CHAR_DAMAGE: dict[str, tuple[Callable[[File], object], str]] = {
    # tiny_char: 0 +a b, 1 +▁ ab, 2 -ab, 3 +▁ab c, ...
    "no alphabet": put("alphabet", None),
    "an empty alphabet": (lambda file: file.update(alphabet=[]), "alphabet|event 0"),
    "an alphabet out of order": put("alphabet", ["b", "a", "c", "é", "▁"]),
    "an alphabet with a duplicate": put("alphabet", ["a", "a", "b", "c", "é", "▁"]),
    "an alphabet of strings": put("alphabet", ["a", "b", "cé", "▁"]),
    "an alphabet with nothing in it": put("alphabet", ["", "a", "b", "c", "é", "▁"]),
    "an alphabet of numbers": put("alphabet", [1, 2]),
    "no coverage": put("coverage", None),
    "coverage 0": put("coverage", 0),
    "coverage above 1": put("coverage", 1.5),
    "no <unk>": put("special_tokens", ["<s>"]),
    "a merge of <unk>": put_event(3, "+", "<unk>", "c", 9),
    "a merge of an unknown character": put_event(3, "+", "▁ab", "d", 9),
    "a merge that spells a special token": (
        lambda file: file.update(special_tokens=["<unk>", "▁ab"]),
        r"event 1\b",
    ),
    "a merge beyond max_token_length": (lambda file: file.update(max_token_length=3), r"event 3\b"),
    "a removal without a threshold": (lambda file: file.update(threshold=1.0), r"event 2\b"),
    "going on after the target": (lambda file: file.update(vocab_size=8), r"event \d"),
    "a pair below min_frequency": (lambda file: file.update(min_frequency=5), r"event 6\b"),
}


@pytest.mark.parametrize("damage", CHAR_DAMAGE)
def test_damaged_char_files_are_refused(damage: str, tiny_char: Tokenizer, tmp_path: Path) -> None:
    file: File = json.loads(saved(tiny_char, tmp_path))
    change, place = CHAR_DAMAGE[damage]
    change(file)
    with pytest.raises(ModelError, match=place):
        load(json.dumps(file, ensure_ascii=False), tmp_path)


HOSTILE: dict[str, Callable[[str], str | bytes]] = {
    "empty": lambda _: "",
    "white space": lambda _: " \n ",
    "null": lambda _: "null",
    "a list": lambda _: "[]",
    "an empty object": lambda _: "{}",
    "a counts file": lambda _: '{"format":"pickytok-counts","version":1,"unicode":"16.0.0","pretokenizer":"none"}\n',
    "deep lists": lambda _: "[" * 1_000_000,
    "deep objects": lambda _: '{"a":' * 1_000_000,
    "deep nesting in a field": lambda text: text.replace('"none"', "[" * 200_000 + "]" * 200_000),
    "NaN": lambda text: text.replace("0.6", "NaN"),
    "Infinity": lambda text: text.replace("0.6", "Infinity"),
    "1e999": lambda text: text.replace("0.6", "1e999"),
    "a giant number": lambda text: text.replace("270", "9" * 100_000),
    "a lone surrogate": lambda text: text.replace('"<s>"', '"<s>\\ud800"'),
    "the same field twice": lambda text: text.replace("{", '{"threshold": 0.7,', 1),
    "events twice": lambda text: text.rstrip().removesuffix("}") + ',"events":[]}',
    "more after the end": lambda text: text + "{}",
    "a byte order mark": lambda text: "\ufeff" + text,
    "not UTF-8": lambda text: text.encode().replace(b"<s>", b"<\xff>", 1),
    "UTF-16": lambda text: text.encode("utf-16"),
    "zeros": lambda text: b"\x00" * len(text),
    "a comment": lambda text: "// model\n" + text,
    "a trailing comma": lambda text: text.rstrip().removesuffix("}") + ",}",
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_files_are_refused(hostile: str, tiny: Tokenizer, tmp_path: Path) -> None:
    text = saved(tiny, tmp_path)
    changed = HOSTILE[hostile](text)
    assert changed != text
    with pytest.raises(ModelError, match=r"changed\.json") as caught:
        load(changed, tmp_path)
    assert len(str(caught.value)) < 1000  # names the place, does not repeat the file


@pytest.mark.parametrize("which", ["tiny", "tiny_char"])
def test_every_truncation_is_refused(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    data = saved(request.getfixturevalue(which), tmp_path).encode().rstrip()
    for end in range(len(data)):
        with pytest.raises(ModelError, match=r"changed\.json"):
            load(data[:end], tmp_path)


def test_truncations_of_a_large_file_are_refused(picky_tokenizer: Tokenizer, tmp_path: Path) -> None:
    data = saved(picky_tokenizer, tmp_path).encode().rstrip()
    rng = random.Random(1)
    ends = [match.end() for match in re.finditer(rb"\n", data)]
    for end in [*rng.sample(ends, k=30), *(rng.randrange(len(data)) for _ in range(30))]:
        with pytest.raises(ModelError, match=r"changed\.json"):
            load(data[:end], tmp_path)


@pytest.mark.parametrize("which", ["tiny", "tiny_char"])
def test_random_damage_is_refused_or_makes_a_whole_tokenizer(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    data = saved(request.getfixturevalue(which), tmp_path).encode()
    rng = random.Random(2)
    pool = [b"0", b"1", b"9", b"-", b'"', b",", b"[", b"]", b"a", b"b", b"c", b"+", b"null", b".5", b"\\u0061", b""]
    refused = 0
    for _ in range(3000):
        broken = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            at = rng.randrange(len(broken))
            broken[at : at + rng.randint(0, 2)] = rng.choice([*pool, rng.randbytes(1)])
        refused += not is_whole(bytes(broken), tmp_path)
    assert refused > 1000


@pytest.mark.parametrize("which", ["tiny", "tiny_char"])
def test_events_in_another_order(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Some orders are as good as the one that happened; the others are refused."""
    file: File = json.loads(saved(request.getfixturevalue(which), tmp_path))
    rng = random.Random(3)
    refused = 0
    for _ in range(500):
        changed = copy.deepcopy(file)
        i, j = (rng.randrange(len(file["events"])) for _ in range(2))
        event = changed["events"].pop(i)
        changed["events"].insert(j, event)
        refused += not is_whole(json.dumps(changed).encode(), tmp_path)
    assert refused > 200


def is_whole(data: bytes, folder: Path) -> bool:
    """Refused, or a tokenizer that works and equals what its own file says."""
    try:
        tok = load(data, folder)
    except ModelError as error:
        if "changed.json" not in str(error):
            raise
        return False
    saved(tok, folder)
    again = Tokenizer.load(folder / "model.json")
    assert again == tok
    assert again.events == tok.events
    for text in ("abcabab é ab", "aaa", "zß"):
        assert again.encode(text) == tok.encode(text)
        assert set(tok.tokenize(text)) <= {*tok.vocab}
    return True


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        Tokenizer.load(tmp_path / "nowhere.json")
    with pytest.raises(OSError, match=re.escape(str(tmp_path))):
        Tokenizer.load(tmp_path)

"""The presets against the patterns that define them, run by another engine (the `regex` package)."""

import random
import sysconfig
import time
from collections.abc import Iterator
from encodings.aliases import aliases
from pathlib import Path

import pytest
import regex
from pickytok import PreTokenizer, unicode_version

# The patterns as published; gpt4o as in tiktoken 0.14.
PATTERNS = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "gpt4": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "gpt4o": "|".join(
        [
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        ]
    ),
}
NAMES = [*PATTERNS, "whitespace", "none"]
PARTITIONS = [*PATTERNS, "none", r"regex:\d+", r"regex:(?<=a)b|c*", "regex:é"]

EVERY_CHARACTER = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
# What each alternative of the patterns turns on, and look-alikes that it must not.
TRICKY = [
    *"aZstSTlLvVeErRdDmMkKxX",
    *"éÉßſǅªʰ中の\u0130ı\ufb05\u212a\U0001d400\U00010428",  # all letter classes; ſ folds to s, the Kelvin sign to k
    *"\u0301\u20dd\u0903\u3099\ufe0f",  # marks: Mn, Me, Mc
    *"0129٣५Ⅷ½²㊿\U0001d7d8",  # Nd, Nl, No
    *"''''’ʼ//!.,-_#。،$+",
    *"\r\n\n   \t\x0b\x0c\x85\xa0\u1680\u2003\u2028\u2029\u202f\u3000",
    *"\x00\x1c\x1f\x7f\xad\u200b\u200d\u2060\ufeff\ufffd\ue000😀🇪\U000e0041\U0010fffd",
]


def ours(category: str) -> set[str]:
    """All characters of a category; matches and the text between them alternate, and U+0000 is no match."""
    return set("".join(PreTokenizer(f"regex:{category}+").split(EVERY_CHARACTER)[1::2]))


def theirs(category: str) -> set[str]:
    return set(regex.findall(category, EVERY_CHARACTER))


@pytest.fixture(scope="module")
def strangers() -> set[str]:
    """Characters on which the two engines' Unicode versions differ.

    `regex` may be years ahead, so what one of them does not assign is left out. Of the rest, a version changes
    the category of one or two (U+0295 in 17.0).
    """
    unassigned = ours(r"\p{Cn}") | theirs(r"\p{Cn}")
    categories = [rf"\p{{{name}}}" for name in ["Lu", "Ll", "Lt", "Lm", "Lo", "M", "N"]]
    changed = set[str]().union(*(ours(category) ^ theirs(category) for category in categories)) - unassigned
    assert len(changed) < 20
    assert len(EVERY_CHARACTER) - len(unassigned) > 280_000
    assert ours(r"\s") == theirs(r"\s")
    return unassigned | changed


def without(strangers: set[str], text: str) -> str:
    return "".join(char for char in text if char not in strangers) if strangers & set(text) else text


def random_texts(count: int) -> Iterator[str]:
    """Mostly short texts over few characters, where every interplay is likely."""
    rng = random.Random(8)
    for _ in range(count):
        size = rng.choice([2, 3, 4, 6, 10, len(TRICKY)])
        yield "".join(rng.choices(rng.sample(TRICKY, size), k=rng.randint(1, rng.choice([4, 8, 20, 80]))))


def real_texts() -> Iterator[str]:
    """Text that any machine has: the standard library, its CJK test data, and all characters of each codec."""
    library = Path(sysconfig.get_path("stdlib"))
    sources = sorted(path for path in library.glob("**/*.py") if "site-packages" not in path.parts)
    samples = sorted(library.glob("test/**/*-utf8.txt"))
    assert len(sources) > 200
    for path in [*samples, *sources[::3]]:
        yield path.read_bytes().decode(errors="replace")
    for codec in sorted(set(aliases.values()) - {"mbcs", "oem"}):
        try:
            yield bytes(range(256)).decode(codec, errors="replace")
        except (LookupError, UnicodeError):  # not a text codec
            continue


@pytest.mark.parametrize("name", PATTERNS)
def test_random_text(name: str, strangers: set[str]) -> None:
    split, pattern = PreTokenizer(name).split, regex.compile(PATTERNS[name])
    assert not strangers & set(TRICKY)
    for text in random_texts(30_000):
        assert split(text) == pattern.findall(text), repr(text)


@pytest.mark.parametrize("name", PATTERNS)
def test_real_text(name: str, strangers: set[str]) -> None:
    split, pattern = PreTokenizer(name).split, regex.compile(PATTERNS[name])
    size = 0
    for text in real_texts():
        known = without(strangers, text)
        assert split(known) == pattern.findall(known)
        size += len(known)
    assert size > 2_000_000


@pytest.mark.parametrize("name", PATTERNS)
def test_every_character(name: str, strangers: set[str]) -> None:
    """Each between letters of either case, numbers, punctuation, spaces and newlines."""
    known = without(strangers, EVERY_CHARACTER)
    text = "".join(f"a{char}A{char}'{char}1 {char}\n{char} !" for char in known)
    assert PreTokenizer(name).split(text) == regex.findall(PATTERNS[name], text)


@pytest.mark.parametrize("name", PATTERNS)
def test_published_pattern_as_custom_pattern(name: str) -> None:
    preset, custom = PreTokenizer(name), PreTokenizer("regex:" + PATTERNS[name])
    for text in random_texts(300):
        assert custom.split(text) == preset.split(text), repr(text)


def test_whitespace_is_str_split() -> None:
    split = PreTokenizer("whitespace").split
    text = "".join(f"a{char}b" for char in EVERY_CHARACTER)
    assert split(text) == ["▁" + word for word in text.split()]
    for text in random_texts(20_000):
        assert split(text) == ["▁" + word for word in text.split()], repr(text)
    assert split(" ▁a a▁b ") == ["▁▁a", "▁a▁b"]


def test_none_is_the_whole_document() -> None:
    assert PreTokenizer("none").split(" a\nb ") == [" a\nb "]


@pytest.mark.parametrize("name", PARTITIONS)
def test_partition(name: str) -> None:
    pretokenizer = PreTokenizer(name)
    for text in [*random_texts(300), EVERY_CHARACTER[:20_000]]:
        words = pretokenizer.split(text)
        assert "".join(words) == text
        assert all(words)


@pytest.mark.parametrize("name", [*NAMES, *PARTITIONS])
def test_empty_document_has_no_words(name: str) -> None:
    assert PreTokenizer(name).split("") == []


@pytest.mark.parametrize("name", NAMES)
def test_linear_time(name: str) -> None:
    """Quadratic time would be minutes for each; this takes milliseconds."""
    split = PreTokenizer(name).split
    units = " |\n|\r\n |\u3000|a|A|中|ªA|\u0301A|A\u0301|'|'s|/|!\n|12|é"
    for unit in units.split("|"):
        text = unit * (1_000_000 // len(unit.encode()))
        for document in [text, text + "x", text + "'", "x" + text + "!"]:
            start = time.perf_counter()
            split(document)
            assert time.perf_counter() - start < 10, (unit, document[-1])


def test_custom_pattern() -> None:
    assert PreTokenizer(r"regex:\d+").split("ab12cd3") == ["ab", "12", "cd", "3"]
    assert PreTokenizer("regex:a*").split("bxaac") == ["bx", "aa", "c"]
    assert PreTokenizer(r"regex:\b").split("one two") == ["one two"]
    assert PreTokenizer(r"regex:(?<=a)b").split("abb") == ["a", "b", "b"]
    # Possessive: what is taken is not given back.
    assert PreTokenizer("regex:a?+ab|b").split("aab") == ["aab"]
    assert PreTokenizer("regex:x++x|b").split("xxb") == ["xx", "b"]


@pytest.mark.parametrize(
    "pattern", [r"\w+", r"[^\s]+|\n", r"(?i)k+|ß", r"(\w)\1", r"\w+(?=!)", r"(?<!a)b+", r"é|.(?s:.)"]
)
def test_custom_pattern_finds_what_regex_finds(pattern: str, strangers: set[str]) -> None:
    pretokenizer, peer = PreTokenizer("regex:" + pattern), regex.compile(pattern)
    for text in random_texts(300):
        if strangers & set(text) or (r"\w" in pattern and regex.search(r"\p{No}|\p{M}|\p{Cf}", text)):
            continue  # they differ on what \w holds
        words, end = [], 0
        for match in peer.finditer(text):
            words += [text[end : match.start()], match[0]]
            end = match.end()
        assert pretokenizer.split(text) == [word for word in [*words, text[end:]] if word], repr(text)


@pytest.mark.parametrize("name", ["", "GPT4", "gpt3", "regex"])
def test_unknown_name(name: str) -> None:
    with pytest.raises(ValueError, match=f'"{name}".*gpt4.*gpt4o.*gpt2.*whitespace.*none.*regex:PATTERN'):
        PreTokenizer(name)


@pytest.mark.parametrize("pattern", ["", "(", "[z-a]", r"\p{Nope}", "a{2,1}", "(?=(", r"\2"])
def test_broken_pattern(pattern: str) -> None:
    with pytest.raises(ValueError, match="regex:" + regex.escape(pattern)):
        PreTokenizer("regex:" + pattern)


def test_pattern_that_gives_up() -> None:
    with pytest.raises(ValueError, match="backtracking"):
        PreTokenizer("regex:(?:a|a)*(?=b)c").split("a" * 100)


def test_name() -> None:
    for name in [*NAMES, "regex: ?\\w+"]:
        assert PreTokenizer(name).name == name
        assert PreTokenizer(name) == PreTokenizer(name)
    assert PreTokenizer("gpt2") != PreTokenizer("gpt4")


def test_unicode_version() -> None:
    major, minor, update = unicode_version.split(".")
    assert len(ours(rf"\p{{age={major}.{minor}}}")) > 280_000
    assert (minor, update) == ("0", "0")
    with pytest.raises(ValueError, match="age"):
        PreTokenizer(rf"regex:\p{{age={int(major) + 1}.0}}")

"""Real text that every machine with Python has, and models trained on it once a session."""

import sysconfig
from pathlib import Path

import pytest
from pickytok import Tokenizer, WordCounts


@pytest.fixture(scope="session")
def stdlib_files() -> list[Path]:
    """The modules of the Python standard library that are files: about 5 MB of prose and code."""
    return sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))


@pytest.fixture(scope="session")
def stdlib_texts(stdlib_files: list[Path]) -> list[str]:
    return [file.read_bytes().decode() for file in stdlib_files]


@pytest.fixture(scope="session")
def held_out_texts() -> list[str]:
    """Text that no model here was trained on."""
    folder = Path(sysconfig.get_path("stdlib"))
    return [
        file.read_bytes().decode() for name in ("asyncio", "email") for file in sorted((folder / name).glob("*.py"))
    ]


@pytest.fixture(scope="session")
def stdlib_counts(stdlib_files: list[Path]) -> WordCounts:
    return WordCounts.from_files(stdlib_files, pretokenizer="gpt4")


@pytest.fixture(scope="session")
def byte_tokenizer(stdlib_counts: WordCounts) -> Tokenizer:
    return Tokenizer.train_from_counts(stdlib_counts, vocab_size=8192, threshold=0.9, special_tokens=["<s>", "</s>"])


@pytest.fixture(scope="session")
def picky_tokenizer(stdlib_counts: WordCounts) -> Tokenizer:
    """A low threshold: many removals, second chances and tokens that came back."""
    return Tokenizer.train_from_counts(stdlib_counts, vocab_size=4096, threshold=0.5)


@pytest.fixture(scope="session")
def char_tokenizer(stdlib_files: list[Path]) -> Tokenizer:
    return Tokenizer.train(stdlib_files, vocab_size=4096, threshold=0.7, preset="paper")


@pytest.fixture(scope="session")
def tiny() -> Tokenizer:
    """A byte model small enough to read: `ab` came, went, and came back."""
    words = {"abc": 9, "ab": 1, " abab": 3, "é": 2}
    return Tokenizer.train_from_counts(
        words, vocab_size=270, threshold=0.6, pretokenizer="none", special_tokens=["<s>", "<s>a"]
    )


@pytest.fixture(scope="session")
def tiny_char() -> Tokenizer:
    words = {"▁abc": 9, "▁ab": 1, "▁abab": 3, "▁é": 2}
    return Tokenizer.train_from_counts(
        words,
        vocab_size=20,
        threshold=0.6,
        unit="char",
        pretokenizer="whitespace",
        coverage=1.0,
        special_tokens=["<s>"],
    )

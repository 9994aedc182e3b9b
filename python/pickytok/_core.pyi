"""The Rust core. Everything here is public through `pickytok`; nothing here is mutable."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from pickytok.events import Merge, Remove, Trace

__all__ = ["ModelError", "PreTokenizer", "Tokenizer", "WordCounts", "__version__", "unicode_version"]

__version__: str
unicode_version: str

_Path: TypeAlias = str | PathLike[str]
_Paths: TypeAlias = _Path | Iterable[_Path]
_Unit: TypeAlias = Literal["byte", "char"]
_Preset: TypeAlias = Literal["paper"]
_Errors: TypeAlias = Literal["strict", "replace"]
_DecodeErrors: TypeAlias = Literal["strict", "replace", "ignore"]
_Mode: TypeAlias = Literal["events", "post_removal", "greedy", "shortest"]
_Special: TypeAlias = Collection[str] | Literal["all"]
_Texts: TypeAlias = Iterable[str] | Iterable[bytes] | Iterable[str | bytes]
_Ids: TypeAlias = Sequence[int] | npt.NDArray[np.uint32]
_Progress: TypeAlias = Callable[[str, int, int], object] | None

class ModelError(ValueError):
    """A model file that is broken, contradictory or of an unknown version."""

@final
class PreTokenizer:
    """Cuts documents into words; nothing ever merges across a word boundary.

    Args:
        name: `whitespace`, `gpt2`, `gpt4`, `gpt4o`, `none` or `regex:PATTERN`.

    >>> PreTokenizer("gpt4").split("I'd like 1234 cats")
    ['I', "'d", ' like', ' ', '123', '4', ' cats']
    """

    def __new__(cls, name: str) -> PreTokenizer: ...
    @property
    def name(self) -> str:
        """The name that it was made from."""
    def split(self, text: str) -> list[str]:
        """The words of one document, as training and encoding see them (▁ included)."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class WordCounts:
    """How often each word occurs: all that training needs to know of a corpus.

    Counts add up: `a + b` is what counting both corpora at once would have given, in any order.

    >>> counts = WordCounts.from_iterator(["a cat", "a dog"], pretokenizer="gpt4")
    >>> counts["a"]
    2
    """

    @staticmethod
    def from_files(
        files: _Paths,
        *,
        pretokenizer: str = "gpt4",
        lines: bool = False,
        errors: _Errors = "strict",
        num_threads: int | None = None,
        progress: _Progress = None,
    ) -> WordCounts:
        """Counts the words of text and JSONL files, plain or compressed (`.gz`, `.zst`).

        Args:
            files: One path or several. `.jsonl` and `.ndjson` files hold a document a line, in its
                field `text`; any other file is one document.
            pretokenizer: How documents are cut into words (see `PreTokenizer`).
            lines: Make each line of a text file a document.
            errors: What to do with invalid UTF-8: `strict` raises, `replace` puts U+FFFD.
            num_threads: At most so many threads; default: all cores. Never changes the result.
            progress: Called now and then with `("count", bytes done, bytes in all)`.
        """
    @staticmethod
    def from_iterator(
        texts: Iterable[str],
        *,
        pretokenizer: str = "gpt4",
        lines: bool = False,
        errors: _Errors = "strict",
        num_threads: int | None = None,
        progress: _Progress = None,
    ) -> WordCounts:
        """Counts the words of documents; each item is one (with `lines=True`, each of its lines).

        `errors="replace"` puts U+FFFD for a lone surrogate, which is an error otherwise.
        """
    @staticmethod
    def from_dict(words: Mapping[str, int], *, pretokenizer: str) -> WordCounts:
        """Takes finished words with their counts; for `whitespace`, words carry their ▁.

        `pretokenizer` is the one that made the words: encoding will use it.
        """
    @staticmethod
    def load(path: _Path) -> WordCounts:
        """Reads a file that `save` wrote."""
    @staticmethod
    def merge_files(inputs: _Paths, output: _Path) -> None:
        """Adds up count files into one, a word at a time: memory does not grow with their size."""
    def save(self, path: _Path) -> None:
        """Writes a sorted, readable file; atomic."""
    @property
    def pretokenizer(self) -> str:
        """The name of the pre-tokenizer that made the words."""
    @property
    def total(self) -> int:
        """How many words there are, repetitions included."""
    def items(self) -> list[tuple[str, int]]:
        """All words with their counts, sorted by the words' UTF-8 bytes."""
    def __getitem__(self, word: str, /) -> int: ...
    def __contains__(self, word: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __add__(self, other: WordCounts, /) -> WordCounts: ...
    def __radd__(self, other: WordCounts, /) -> WordCounts: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Tokenizer:
    """A trained Picky BPE tokenizer: an alphabet, and the events that training performed on it.

    >>> words = {" kentucky": 9, " lucky": 5, " duck": 4}
    >>> tok = Tokenizer.train_from_counts(words, vocab_size=264, threshold=0.9, pretokenizer="gpt4")
    >>> tok.decode(tok.encode("lucky kentucky"))
    'lucky kentucky'
    """

    @staticmethod
    def train(
        files: _Paths,
        *,
        vocab_size: int,
        threshold: float,
        unit: _Unit = "byte",
        pretokenizer: str = "gpt4",
        preset: _Preset | None = None,
        coverage: float | None = None,
        special_tokens: Iterable[str] = (),
        min_frequency: int = 1,
        max_token_length: int | None = None,
        lines: bool = False,
        errors: _Errors = "strict",
        num_threads: int | None = None,
        progress: _Progress = None,
    ) -> Tokenizer:
        """Trains on files: exactly `train_from_counts(WordCounts.from_files(...))`.

        Args:
            files: One path or several, as in `WordCounts.from_files`.
            vocab_size: How many tokens the vocabulary holds in the end, special tokens and alphabet included.
            threshold: T of the paper, in (0, 1]: a token is removed once so large a share of its
                occurrences was absorbed by one merge. 1.0 removes nothing: plain BPE.
            unit: What a word is made of: `byte` (nothing is ever unknown) or `char` (the paper).
            pretokenizer: How documents are cut into words (see `PreTokenizer`).
            preset: `paper` means chars, `whitespace` words, coverage 0.9999, lines as documents and
                the special tokens `<pad> <unk> <bos> <eos>`; a keyword given beside it wins.
            coverage: Share of all characters that the alphabet must cover, in (0, 1]; chars only, default 0.9999.
            special_tokens: Tokens with the first ids, never produced by merging.
            min_frequency: Stop when the most frequent pair occurs less often.
            max_token_length: Longest token that a merge may make, in bytes or characters.
            lines: Make each line of a text file a document.
            errors: What to do with invalid UTF-8 in files: `strict` raises, `replace` puts U+FFFD.
            num_threads: At most so many threads; default: all cores. Never changes the result.
            progress: Called now and then with `(stage, done, total)`; stages are `count` and `train`.
        """
    @staticmethod
    def train_from_iterator(
        texts: Iterable[str],
        *,
        vocab_size: int,
        threshold: float,
        unit: _Unit = "byte",
        pretokenizer: str = "gpt4",
        preset: _Preset | None = None,
        coverage: float | None = None,
        special_tokens: Iterable[str] = (),
        min_frequency: int = 1,
        max_token_length: int | None = None,
        lines: bool = False,
        errors: _Errors = "strict",
        num_threads: int | None = None,
        progress: _Progress = None,
    ) -> Tokenizer:
        """Trains on documents: each item is one (with `lines=True`, each of its lines)."""
    @staticmethod
    def train_from_counts(
        counts: WordCounts | Mapping[str, int],
        *,
        vocab_size: int,
        threshold: float,
        unit: _Unit = "byte",
        pretokenizer: str | None = None,
        preset: _Preset | None = None,
        coverage: float | None = None,
        special_tokens: Iterable[str] = (),
        min_frequency: int = 1,
        max_token_length: int | None = None,
        progress: _Progress = None,
    ) -> Tokenizer:
        """Trains on words that are counted already.

        Args:
            counts: `WordCounts`, or finished words with their counts; then `pretokenizer` says
                what cut them.
        """
    @staticmethod
    def load(path: _Path) -> Tokenizer:
        """Reads a model file, replays and checks every event of it.

        Raises:
            ModelError: The file is not a valid model; the message names the place.
        """
    def save(self, path: _Path) -> None:
        """Writes the model file; atomic, and equal training gives equal bytes."""
    def encode(self, text: str, *, allowed_special: _Special = (), mode: _Mode = "events") -> list[int]:
        """The ids of a text.

        Args:
            text: Any text. Special tokens in it are plain text unless `allowed_special` names them.
            allowed_special: Special tokens to recognise, or `"all"`.
            mode: `events` replays merges and removals in their order; `post_removal`, `greedy` and
                `shortest` are other ways to use the same vocabulary.
        """
    def encode_bytes(self, data: bytes, *, mode: _Mode = "events") -> list[int]:
        """The ids of bytes that need not be UTF-8; for valid UTF-8, those of `encode`."""
    def count_tokens(self, text: str, *, allowed_special: _Special = (), mode: _Mode = "events") -> int:
        """`len(encode(text))`, without making a list."""
    def encode_batch(
        self,
        texts: _Texts,
        *,
        allowed_special: _Special = (),
        mode: _Mode = "events",
        num_threads: int | None = None,
        progress: _Progress = None,
    ) -> list[list[int]]:
        """The ids of many texts, on all cores. Bytes are taken as `encode_bytes` takes them."""
    def encode_to_numpy(
        self,
        texts: _Texts,
        *,
        allowed_special: _Special = (),
        mode: _Mode = "events",
        num_threads: int | None = None,
        progress: _Progress = None,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """The ids of many texts in one array; text `i` is `ids[offsets[i]:offsets[i + 1]]`."""
    def encode_with_offsets(
        self, text: str, *, allowed_special: _Special = (), mode: _Mode = "events"
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids, and for each the characters `text[start:end]` that it comes from."""
    def decode(self, ids: _Ids, *, skip_special_tokens: bool = False, errors: _DecodeErrors = "replace") -> str:
        """The text of ids. A token may end inside a character: `errors` says what to do then."""
    def decode_bytes(self, ids: _Ids, *, skip_special_tokens: bool = False) -> bytes:
        """The bytes of ids, exactly."""
    def decode_batch(
        self,
        batch: Iterable[_Ids],
        *,
        skip_special_tokens: bool = False,
        errors: _DecodeErrors = "replace",
        num_threads: int | None = None,
    ) -> list[str]:
        """The texts of many sequences of ids."""
    def tokenize(self, text: str, *, allowed_special: _Special = (), mode: _Mode = "events") -> list[str]:
        """The tokens of a text as printable strings."""
    def trace(self, word: str) -> Trace:
        """One word's life: what every event that touched it made of it.

        Raises:
            ValueError: The pre-tokenizer cuts the text into several words, or into none.
        """
    @property
    def vocab_size(self) -> int:
        """How many tokens the vocabulary holds; ids are `0 .. vocab_size - 1`."""
    @property
    def vocab(self) -> dict[str, int]:
        """All tokens, printable, with their ids, in the order of ids."""
    def token_to_id(self, token: str) -> int: ...
    def id_to_token(self, id: int) -> str: ...
    def id_to_bytes(self, id: int) -> bytes: ...
    @property
    def special_tokens(self) -> list[str]:
        """The special tokens in the order of their ids; chars always have `<unk>`."""
    @property
    def alphabet(self) -> list[str]:
        """The alphabet in the order of ids, printable."""
    @property
    def events(self) -> list[Merge | Remove]:
        """All that training did, in order."""
    @property
    def removed(self) -> list[str]:
        """Tokens that were removed and did not come back, in the order of their making."""
    @property
    def threshold(self) -> float: ...
    @property
    def unit(self) -> str: ...
    @property
    def pretokenizer(self) -> str: ...
    @property
    def coverage(self) -> float | None: ...
    @property
    def min_frequency(self) -> int: ...
    @property
    def max_token_length(self) -> int | None: ...
    @property
    def stop_reason(self) -> Literal["vocab_size", "exhausted", "min_frequency"]:
        """Why training ended: at its size, with no pair left, or below `min_frequency`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

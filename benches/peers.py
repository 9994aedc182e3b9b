"""One small adapter for each tokenizer: how it trains on files, and how it encodes.

An adapter imports its package and prepares what need not be timed, then returns what is timed. To add a
case, add a line to `TRAINERS` or `ENCODERS`; everything else follows from the name.
"""

import base64
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

GPT2_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

PACKAGES = (
    "gigatoken",
    "tokenizers",
    "tiktoken",
    "rustbpe",
    "ffbpe",
    "bpeasy",
    "sentencepiece",
    "pickybpe_bauwenst",
    "numpy",
)

Made: TypeAlias = list[tuple[bytes, ...]]
"""What training made, in order: pairs of parts where the peer tells them, single tokens elsewhere."""


class Task(NamedTuple):
    """What to train on, how large a vocabulary, and the file for the model.

    `whole` gives each file as one document to those who read lines by themselves: then all see the same words.
    """

    files: Sequence[str]
    vocab_size: int
    threads: int
    out: str
    whole: bool = False

    def texts(self) -> Iterator[str]:
        for file in self.files:
            if self.whole:
                yield Path(file).read_bytes().decode()
            else:
                with Path(file).open(encoding="utf-8", newline="\n") as lines:
                    yield from lines


class Training(NamedTuple):
    """Training that is ready to start, and how to read what it made."""

    train: Callable[[], Any]
    made: Callable[[Any], Made] | None = None


class Trainer(NamedTuple):
    """A contestant."""

    prepare: Callable[[Task], Training]
    note: str
    rounds: int | None = None
    """At most so many repetitions, for the slow ones."""


def versions() -> dict[str, str]:
    import pickytok

    found = {"pickytok": pickytok.__version__}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


def byte_of_char() -> dict[str, int]:
    """The printable stand-ins for bytes that GPT-2 introduced, backwards."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(printable))
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def to_bytes(pairs: Iterable[tuple[str, str]]) -> Made:
    table = byte_of_char()
    return [tuple(bytes(table[char] for char in part) for part in pair) for pair in pairs]


def by_rank(ranks: Iterable[tuple[bytes, int]]) -> Made:
    """The tokens that are not single bytes, in the order of their ranks."""
    return [(token,) for token, _ in sorted(ranks, key=lambda item: item[1]) if len(token) > 1]


# Training


def pickytok_at(threshold: float, **options: Any) -> Callable[[Task], Training]:
    def prepare(task: Task) -> Training:
        from pickytok import Merge, Tokenizer

        def train() -> Tokenizer:
            settings = {"pretokenizer": "gpt2"} | options
            size, threads = task.vocab_size, task.threads
            tok = Tokenizer.train(task.files, vocab_size=size, threshold=threshold, num_threads=threads, **settings)
            tok.save(task.out)
            return tok

        def made(tok: Tokenizer) -> Made:
            pairs = [(event.left, event.right) for event in tok.events if isinstance(event, Merge)]
            if tok.unit == "char":
                return [(left.encode(), right.encode()) for left, right in pairs]
            return to_bytes(pairs)

        return Training(train, made)

    return prepare


def gigatoken(task: Task) -> Training:
    import gigatoken

    source: Any = gigatoken.TextFileSource(list(task.files))

    def train() -> Any:
        return gigatoken.train_bpe(source, task.vocab_size, [], tie_breaking="huggingface")

    return Training(train, lambda model: list(model[1]))


def huggingface(task: Task) -> Training:
    import tokenizers

    byte_level = tokenizers.pre_tokenizers.ByteLevel

    def train() -> tokenizers.Tokenizer:
        tok = tokenizers.Tokenizer(tokenizers.models.BPE())
        tok.pre_tokenizer = byte_level(add_prefix_space=False)
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=task.vocab_size, initial_alphabet=byte_level.alphabet(), show_progress=False
        )
        if task.whole:
            tok.train_from_iterator(task.texts(), trainer)
        else:
            tok.train(list(task.files), trainer)
        return tok

    def made(tok: tokenizers.Tokenizer) -> Made:
        return to_bytes((left, right) for left, right in json.loads(tok.to_str())["model"]["merges"])

    return Training(train, made)


def rustbpe(task: Task) -> Training:
    import rustbpe

    def train() -> Any:
        tok = rustbpe.Tokenizer()
        tok.train_from_iterator(task.texts(), task.vocab_size, pattern=GPT2_PATTERN)
        return tok

    return Training(train, lambda tok: by_rank((bytes(token), rank) for token, rank in tok.get_mergeable_ranks()))


def ffbpe(task: Task) -> Training:
    import ffbpe

    def train() -> Any:
        counter = ffbpe.PreTokenizer([], pat_str=GPT2_PATTERN).word_counter()
        counter.add_source(task.texts())
        trainer = ffbpe.BpeTrainer([], initial_alphabet="byte_level", tie_break="smallest_pair_id")
        trainer.add_word_counter(counter)
        trainer.train(task.vocab_size)
        return trainer

    return Training(train, lambda trainer: by_rank(trainer.vocab.items()))


def bpeasy(task: Task) -> Training:
    import bpeasy

    def train() -> Any:
        no_limit = 1_000_000
        return bpeasy.train_bpe(task.texts(), GPT2_PATTERN, no_limit, task.vocab_size)

    return Training(train, lambda ranks: by_rank(ranks.items()))


def sentencepiece(task: Task) -> Training:
    import sentencepiece

    def train() -> None:
        sentencepiece.SentencePieceTrainer.train(
            input=list(task.files),
            model_prefix=task.out,
            model_type="bpe",
            vocab_size=task.vocab_size,
            num_threads=task.threads,
            normalization_rule_name="identity",
            character_coverage=0.9999,
            max_sentence_length=1 << 20,
            minloglevel=2,
        )

    return Training(train)


def pickybpe_at(threshold: float) -> Callable[[Task], Training]:
    def prepare(task: Task) -> Training:
        from pickybpe.vocabularisation import PickyBPETrainer

        (file,) = task.files

        def train() -> None:
            trainer = PickyBPETrainer(task.vocab_size, picky_threshold=threshold)
            trainer.fit_from_file(file, Path(task.out))

        def made(_: None) -> Made:
            merges = json.loads(Path(task.out).read_text(encoding="utf-8"))["merges"]
            return [tuple(part["str"].encode() for part in merge["pair"]) for merge in merges]

        return Training(train, made)

    return prepare


OURS = {"pickytok T=0.9": 0.9, "pickytok T=1.0": 1.0, "pickytok T=0.6": 0.6}

BY_LINES = "reads lines"
TRAINERS: dict[str, Trainer] = {
    **{name: Trainer(pickytok_at(t), "whole files; saves its model within the time") for name, t in OURS.items()},
    "gigatoken": Trainer(gigatoken, "whole files; vanilla BPE, ties as in tokenizers"),
    "ffbpe": Trainer(ffbpe, f"{BY_LINES}; ties as in tokenizers", rounds=2),
    "rustbpe": Trainer(rustbpe, f"{BY_LINES}; ties by raw byte values", rounds=2),
    "tokenizers": Trainer(huggingface, BY_LINES, rounds=2),
    "sentencepiece": Trainer(sentencepiece, f"{BY_LINES}; its own words, characters instead of bytes", rounds=1),
    "bpeasy": Trainer(bpeasy, f"{BY_LINES}; ties by raw byte values", rounds=1),
}
PAPER = {
    "pickytok T=0.9": Trainer(pickytok_at(0.9, preset="paper", pretokenizer="whitespace"), "preset `paper`"),
    "pickybpe_bauwenst T=0.9": Trainer(pickybpe_at(0.9), "pure Python, after the authors' prototype"),
    "pickytok T=1.0": Trainer(pickytok_at(1.0, preset="paper", pretokenizer="whitespace"), "preset `paper`"),
    "pickybpe_bauwenst T=1.0": Trainer(pickybpe_at(1.0), "the same without removals"),
}
"""Characters and white-space words, on a small sample."""


# Encoding


class Models(NamedTuple):
    """Files of trained models: `ours` by contestant; the other two hold the T = 1.0 model in other formats."""

    ours: dict[str, str]
    ranks: str
    merges: str


class Encoder(NamedTuple):
    """An encoder that is ready: a batch of each kind of input, its ids text by text, one text, and back.

    Kinds are `list[str]`, `list[bytes]` and `files` (then the batch is a list of paths, lines are texts).
    A kind that pickytok offers is measured for everyone who offers it.
    """

    batch: dict[str, Callable[[Any], Any]]
    ids: Callable[[Any], Iterator[Sequence[int]]]
    one: dict[str, Callable[[str], Any]]
    decode: Callable[[Any], Any] | None = None


class Contender(NamedTuple):
    """`prepare` takes the models and the number of threads; `share` of the sample keeps slow ones in time."""

    prepare: Callable[[Models, int], Encoder]
    output: str
    share: float = 1.0
    rounds: int | None = None


def encode_pickytok(name: str) -> Callable[[Models, int], Encoder]:
    def prepare(models: Models, threads: int) -> Encoder:
        import numpy as np  # noqa: F401  (the first call would import it)
        from pickytok import Tokenizer

        tok = Tokenizer.load(models.ours[name])

        def ids(result: Any) -> Iterator[Sequence[int]]:
            flat, offsets = result
            return (flat[a:b] for a, b in itertools.pairwise(offsets))

        batch: dict[str, Callable[[Any], Any]] = {
            "list[str]": lambda texts: tok.encode_to_numpy(texts, num_threads=threads),
            "list[bytes]": lambda texts: tok.encode_to_numpy(texts, num_threads=threads),
        }
        return Encoder(batch, ids, {"encode": tok.encode}, tok.decode)

    return prepare


def encode_gigatoken(models: Models, threads: int) -> Encoder:
    import awkward  # noqa: F401  (its first call would import it)
    import gigatoken

    tok: Any = gigatoken.Tokenizer.from_tiktoken(models.ranks, pretokenizer="gpt2")

    def batch(texts: Any) -> Any:
        return tok.encode_batch(texts, parallel=threads > 1)

    def of_files(paths: Any) -> Any:
        return tok.encode_files(gigatoken.TextFileSource(paths, separator=b"\n"), parallel=threads > 1)

    def one(text: str) -> Any:
        return tok.encode(text).tolist()

    kinds = {"list[str]": batch, "list[bytes]": batch, "files": of_files}
    return Encoder(kinds, lambda rows: (row.to_numpy() for row in rows), {"encode, tolist": one})


def encode_tiktoken(models: Models, threads: int) -> Encoder:
    import tiktoken

    # Its batch call gives each text to a pool of threads, which costs more than a short text's encoding does:
    # on one thread a plain loop is what is fastest.
    rows = (line.split() for line in Path(models.ranks).read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
    tok: Any = tiktoken.Encoding("bench", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={})

    def batch(texts: list[str]) -> Any:
        if threads == 1:
            return [tok.encode_ordinary(text) for text in texts]
        return tok.encode_ordinary_batch(texts, num_threads=threads)

    singles = {"encode_ordinary": tok.encode_ordinary, "encode": tok.encode}
    return Encoder({"list[str]": batch}, iter, singles, tok.decode)


def encode_huggingface(models: Models, threads: int) -> Encoder:
    import tokenizers

    model = json.loads(Path(models.merges).read_text(encoding="utf-8"))
    merges = [(left, right) for left, right in model["merges"]]
    tok = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=model["vocab"], merges=merges))
    tok.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)

    def ids(result: Any) -> Iterator[Sequence[int]]:
        return (encoding.ids for encoding in result)

    return Encoder({"list[str]": tok.encode_batch_fast}, ids, {"encode": lambda text: tok.encode(text).ids})


ENCODERS: dict[str, Contender] = {
    "pickytok T=1.0": Contender(encode_pickytok("pickytok T=1.0"), "numpy"),
    "pickytok T=0.9": Contender(encode_pickytok("pickytok T=0.9"), "numpy"),
    "pickytok T=0.6": Contender(encode_pickytok("pickytok T=0.6"), "numpy"),
    "gigatoken": Contender(encode_gigatoken, "awkward array"),
    "tiktoken": Contender(encode_tiktoken, "lists; a loop on one thread, its batch call on two", rounds=2),
    "tokenizers": Contender(encode_huggingface, "objects", share=1 / 15, rounds=1),
}
VANILLA = ("pickytok T=1.0", "gigatoken", "tiktoken", "tokenizers")
"""Those with one and the same vocabulary: their ids must be equal."""


def write_other_formats(ours: str, ranks: str, merges: str) -> None:
    """Writes a vanilla model for the others: base64 tokens with their ranks, and merges with a vocabulary."""
    from pickytok import Merge, Tokenizer

    tok = Tokenizer.load(ours)
    tokens = [tok.id_to_bytes(i) for i in range(tok.vocab_size)]
    Path(ranks).write_bytes(b"".join(b"%s %d\n" % (base64.b64encode(token), i) for i, token in enumerate(tokens)))
    pairs = [(event.left, event.right) for event in tok.events if isinstance(event, Merge)]
    Path(merges).write_text(json.dumps({"vocab": tok.vocab, "merges": pairs}), encoding="utf-8")

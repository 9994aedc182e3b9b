"""Inputs that break careless code: giant words, no spaces, no line ends, many words, many files.

`measure` is for the process that directs; the jobs `make`, `train` and `encode` run in their own.
"""

import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import runner
from runner import peak_megabytes

SECONDS_LIMIT = 10.0
MEGABYTES_LIMIT = 1000.0
VOCAB_SIZE = 32_768
STOP_AFTER = 60.0
"""Beyond the limit, so that a case over it still gets its number."""

Json: TypeAlias = dict[str, Any]

GPT2: Json = {"pretokenizer": "gpt2"}
NO_SPACES: Json = {"pretokenizer": "whitespace", "unit": "char", "coverage": 1.0}


class Case(NamedTuple):
    """`size` counts bytes, words or files, as the maker has it."""

    maker: str
    size: int
    options: Json


CASES = {
    "one word of 10 MB, `a` repeated": Case("letter", 10_000_000, GPT2),
    "one word of 10 MB, random letters": Case("letters", 10_000_000, GPT2),
    "one word of 10 MB, DNA": Case("dna", 10_000_000, GPT2),
    "5 million unique words": Case("unique", 5_000_000, GPT2),
    "30 MB of Chinese without spaces": Case("chinese", 30_000_000, NO_SPACES),
    "30 MB of Thai without spaces": Case("thai", 30_000_000, NO_SPACES),
    "100 MB on one line": Case("line", 100_000_000, GPT2),
    "20,000 tiny files": Case("files", 20_000, GPT2),
}


# Making them: generated, seeded; two are cut from the corpus


def one_word(alphabet: str) -> Callable[[int], Iterator[str]]:
    def make(size: int) -> Iterator[str]:
        rng = random.Random(0)
        for start in range(0, size, 1_000_000):
            yield "".join(rng.choices(alphabet, k=min(1_000_000, size - start)))

    return make


def unique_words(count: int) -> Iterator[str]:
    """All different: six letters that spell a permuted number, and a tail."""
    letters, space = "abcdefghijklmnopqrstuvwxyz", 26**6
    for i in range(count):
        number = i * 99_999_989 % space  # a prime, so no number comes twice
        word = "".join(letters[number // 26**k % 26] for k in range(6)) + "etaoin"[: number % 6]
        yield word + ("\n" if i % 20 == 19 else " ")


def without_spaces(ranges: Sequence[tuple[int, int]], longest: int) -> Callable[[int], Iterator[str]]:
    """Words of made-up characters, frequent and rare ones, in lines, with nothing between them."""

    def make(size: int) -> Iterator[str]:
        rng = random.Random(0)
        chars = [chr(code) for first, last in ranges for code in range(first, last + 1)]
        words = ["".join(rng.choices(chars, k=rng.randint(1, longest))) for _ in range(20_000)]
        weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(words))))
        written = 0
        while written < size:
            line = "".join(rng.choices(words, cum_weights=weights, k=rng.randint(5, 80))) + "\n"
            written += len(line.encode())
            yield line

    return make


MAKERS: dict[str, Callable[[int], Iterator[str]]] = {
    "letter": one_word("a"),
    "letters": one_word("abcdefghijklmnopqrstuvwxyz"),
    "dna": one_word("ACGT"),
    "unique": unique_words,
    "chinese": without_spaces([(0x4E00, 0x9FFF)], 3),
    "thai": without_spaces([(0x0E01, 0x0E3A), (0x0E40, 0x0E4E)], 6),
}


def make(maker: str, size: int, target: str, corpus: Sequence[str]) -> Json:
    """Writes the input, one file or a folder of files."""
    place = Path(target)
    if maker == "files":
        place.mkdir()
        with Path(corpus[0]).open("rb") as lines:
            for i, line in enumerate(itertools.islice(lines, size)):
                place.joinpath(f"{i:05}.txt").write_bytes(line)
    elif maker == "line":
        with place.open("wb") as out:
            left = size
            for source in itertools.cycle(corpus):
                with Path(source).open("rb") as file:
                    while left > 0 and (block := file.read(1 << 20)):
                        left -= out.write(block.replace(b"\n", b" "))
                if left <= 0:
                    break
    else:
        with place.open("w", encoding="utf-8", newline="\n") as out:
            for part in MAKERS[maker](size):
                out.write(part)
    files = inputs(target)
    return {"files": len(files), "bytes": sum(Path(file).stat().st_size for file in files)}


def inputs(target: str) -> list[str]:
    place = Path(target)
    return sorted(map(str, place.iterdir())) if place.is_dir() else [target]


# The two jobs that are measured


def train(target: str, model: str, vocab_size: int, options: Json) -> Json:
    from pickytok import Tokenizer

    files = inputs(target)
    start = time.perf_counter()
    tok = Tokenizer.train(files, vocab_size=vocab_size, threshold=0.9, num_threads=2, **options)
    tok.save(model)
    seconds = time.perf_counter() - start
    return {"seconds": round(seconds, 4), "peak_megabytes": peak_megabytes(), "vocab_size": tok.vocab_size}


def encode(target: str, model: str) -> Json:
    """Each file is one text; ids to numpy. What comes back must be the text, or its words where white space is lost."""
    import numpy as np  # noqa: F401  (the first call would import it)
    from pickytok import Tokenizer

    tok = Tokenizer.load(model)
    texts = [Path(file).read_bytes().decode() for file in inputs(target)]
    start = time.perf_counter()
    ids, offsets = tok.encode_to_numpy(texts, num_threads=2)
    seconds = time.perf_counter() - start
    result = {"seconds": round(seconds, 4), "peak_megabytes": peak_megabytes(), "tokens": len(ids)}
    for text, first, last in zip(texts, offsets[:-1], offsets[1:], strict=True):
        back = tok.decode(ids[first:last])
        if back != text and "".join(back.split()) != "".join(text.split()):
            raise ValueError("the text does not come back")
    return result


def measure(corpus: Sequence[str], folder: Path, scale: float) -> dict[str, Json]:
    results: dict[str, Json] = {}
    for number, (name, case) in enumerate(CASES.items()):
        target, model = str(folder / f"hard{number}"), str(folder / "hard.json")
        size = max(1, round(case.size * scale))
        made = runner.run("make_hard", maker=case.maker, size=size, target=target, corpus=corpus)
        result: Json = {"input": made}
        if "error" not in made:
            spec: Json = {"target": target, "model": model, "timeout": STOP_AFTER}
            result["train"] = runner.run("train_hard", **spec, vocab_size=VOCAB_SIZE, options=case.options)
            if "error" not in result["train"]:
                result["encode"] = runner.run("encode_hard", **spec)
        for file in inputs(target):
            Path(file).unlink(missing_ok=True)
        results[name] = result
        print(f"  {name}: {result}", file=sys.stderr, flush=True)
    return results

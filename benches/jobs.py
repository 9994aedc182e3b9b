"""What one measuring process does: reads a job as JSON from standard input, answers in JSON.

Peers print to standard output; so the answer has the real one for itself, and all else goes to the errors.
"""

import hashlib
import itertools
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import hard
import peers
from runner import peak_megabytes

Json: TypeAlias = dict[str, Any]


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return round(time.perf_counter() - start, 6), result


# The corpus


def unpack(source: str, target: str) -> Json:
    """Copies a corpus file, unpacked, and says what it is."""
    digest, size = hashlib.sha256(), 0
    with Path(source).open("rb") as packed, Path(target).open("wb") as file:
        stream: Any = packed
        if source.endswith(".zst"):
            import zstandard

            stream = zstandard.ZstdDecompressor().stream_reader(packed)
        while block := stream.read(1 << 20):
            digest.update(block)
            size += file.write(block)
    return {"name": Path(source).name, "bytes": size, "sha256": digest.hexdigest()[:16]}


def python_sources(target: str) -> Json:
    """The text of the smoke run: the sources of Python's standard library in one file."""
    from pickytok.demo import sources

    text = "".join(path.read_bytes().decode("utf-8", "replace") for path in sources())
    data = text.replace("\r\n", "\n").encode()
    Path(target).write_bytes(data)
    return {"name": "Python's standard library", "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()[:16]}


def cut(files: Sequence[str], target: str, megabytes: float) -> Json:
    """Writes so many megabytes of whole lines, from each file its share; starts again where the files end."""
    total = sum(Path(file).stat().st_size for file in files)
    wanted = round(megabytes * 1e6)
    size = 0
    with Path(target).open("wb") as out:
        for source in files:
            left = wanted * Path(source).stat().st_size // total
            while left > 0:
                with Path(source).open("rb") as file:
                    while left > 0 and (block := file.read(min(1 << 20, left)) + file.readline()):
                        size += out.write(block)
                        left -= len(block)
    return {"bytes": size, "duplicated": wanted > total}


def lines(files: Sequence[str], megabytes: float) -> list[bytes]:
    """The first lines of each file, without their ends, all in all so many megabytes."""
    found = []
    for file in files:
        with Path(file).open("rb") as stream:
            found += [line.rstrip(b"\n") for line in stream.readlines(round(megabytes * 1e6 / len(files)))]
    return found


def short_strings(files: Sequence[str], count: int) -> list[str]:
    """Beginnings of lines, of 20 to 200 characters, seeded."""
    rng = random.Random(0)
    texts = (line.decode()[: rng.randint(20, 200)] for line in lines(files, count / 1500))
    return list(itertools.islice((text for text in texts if len(text) >= 20), count))


# Training


def train(
    *,
    contestant: str,
    files: Sequence[str],
    vocab_size: int,
    threads: int,
    out: str,
    made: str | None = None,
    paper: bool = False,
    whole: bool = False,
) -> Json:
    trainer = (peers.PAPER if paper else peers.TRAINERS)[contestant]
    training = trainer.prepare(peers.Task(files, vocab_size, threads, out, whole))
    before = peak_megabytes()
    seconds, model = timed(training.train)
    result: Json = {"seconds": seconds, "peak_megabytes": peak_megabytes(), "before_megabytes": before}
    if contestant.startswith("pickytok"):
        result |= {"vocab_size": model.vocab_size, "stop_reason": model.stop_reason}
    if made and training.made:
        parts = [[part.hex() for part in parts] for parts in training.made(model)]
        Path(made).write_text(json.dumps(parts), encoding="utf-8")
    return result


def compare_made(ours: str, theirs: str) -> Json:
    """How two lists of merges differ; where one side knows tokens only, tokens are compared."""
    ours_made, theirs_made = (json.loads(Path(path).read_text(encoding="utf-8")) for path in (ours, theirs))
    return difference(ours_made, theirs_made)


def difference(ours: list[list[str]], theirs: list[list[str]]) -> Json:
    pairs = all(len(parts) == 2 for parts in itertools.chain(ours, theirs))
    if not pairs:
        # A token may be made twice, of other parts; a vocabulary tells the first time only.
        ours, theirs = (
            [[token] for token in dict.fromkeys("".join(parts) for parts in side)] for side in (ours, theirs)
        )
    place = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
    if place is None and len(ours) != len(theirs):
        place = min(len(ours), len(theirs))
    tokens, others = ({"".join(parts) for parts in side} for side in (ours, theirs))
    return {
        "compared": "merges" if pairs else "tokens",
        "count": len(ours),
        "equal": place is None,
        "first_difference": place,
        "not_shared": len(tokens - others),
    }


# Encoding


def digest_of(ids: Iterable[Sequence[int]]) -> tuple[str, int]:
    import numpy as np

    digest, count = hashlib.sha256(), 0
    for row in ids:
        digest.update(np.asarray(row, dtype=np.uint32).tobytes() + b";")
        count += len(row)
    return digest.hexdigest(), count


def ready(contestant: str, models: Json, threads: int) -> peers.Encoder:
    return peers.ENCODERS[contestant].prepare(peers.Models(**models), threads)


def kinds(contestant: str, models: Json) -> Json:
    encoder = ready(contestant, models, 1)
    return {"batch": list(encoder.batch), "one": list(encoder.one), "decode": encoder.decode is not None}


def encode(
    *,
    contestant: str,
    kind: str,
    threads: int,
    files: Sequence[str],
    megabytes: float,
    models: Json,
    calls: int,
    digest: bool = False,
) -> Json:
    """The first call of a fresh process, and later ones on the same texts."""
    raw = lines(files, megabytes)
    size = sum(map(len, raw))
    count = len(raw)
    batch: Any = raw
    if kind == "list[str]":
        batch = [line.decode() for line in raw]
    elif kind == "files":
        batch = list(files)
        size = sum(Path(file).stat().st_size for file in files)
    del raw
    encoder = ready(contestant, models, threads)
    run = encoder.batch[kind]
    before = peak_megabytes()
    cold, result = timed(lambda: run(batch))
    answer: Json = {"bytes": size, "texts": count, "cold_seconds": cold, "before_megabytes": before}
    if digest:
        answer["digest"], answer["tokens"] = digest_of(encoder.ids(result))
    del result
    warm = [timed(lambda: run(batch))[0] for _ in range(calls - 1)]
    return answer | {"warm_seconds": warm, "peak_megabytes": peak_megabytes()}


def encode_short(*, contestant: str, method: str, files: Sequence[str], count: int, models: Json, calls: int) -> Json:
    """One string after the other, lists out."""
    texts = short_strings(files, count)
    one = ready(contestant, models, 1).one[method]

    def run() -> None:
        for text in texts:
            one(text)

    seconds = [timed(run)[0] for _ in range(calls)]
    digest, tokens = digest_of(map(one, texts))
    return {
        "strings": len(texts),
        "bytes": sum(len(text.encode()) for text in texts),
        "digest": digest,
        "tokens": tokens,
        "cold_seconds": seconds[0],
        "warm_seconds": seconds[1:],
    }


def decode(contestant: str, files: Sequence[str], count: int, models: Json, calls: int) -> Json:
    """Lists of ids back to text: one short text after the other, and all of them as one long text."""
    texts = short_strings(files, count)
    encoder = ready(contestant, models, 1)
    one = next(iter(encoder.one.values()))
    back = encoder.decode
    if back is None:
        raise ValueError(f"{contestant} does not decode to text")
    rows = [list(one(text)) for text in texts]
    long_text = "\n".join(texts)
    long_row = list(one(long_text))
    if [back(row) for row in rows] != texts or back(long_row) != long_text:
        raise ValueError(f"{contestant}: the text does not come back")

    def run() -> None:
        for row in rows:
            back(row)

    short = [timed(run)[0] for _ in range(calls)]
    long = [timed(lambda: back(long_row))[0] for _ in range(calls)]
    return {"bytes": len(long_text.encode()), "strings": len(texts), "short_seconds": short, "long_seconds": long}


# Models


def load(model: str, calls: int) -> Json:
    from pickytok import Tokenizer

    seconds = [timed(lambda: Tokenizer.load(model))[0] for _ in range(calls)]
    tok = Tokenizer.load(model)
    return {
        "seconds": seconds,
        "bytes": Path(model).stat().st_size,
        "vocab_size": tok.vocab_size,
        "events": len(tok.events),
    }


def other_formats(ours: str, ranks: str, merges: str) -> Json:
    peers.write_other_formats(ours, ranks, merges)
    return {}


JOBS: dict[str, Callable[..., Json]] = {
    "versions": peers.versions,
    "unpack": unpack,
    "python_sources": python_sources,
    "cut": cut,
    "train": train,
    "compare_made": compare_made,
    "kinds": kinds,
    "encode": encode,
    "encode_short": encode_short,
    "decode": decode,
    "load": load,
    "other_formats": other_formats,
    "make_hard": hard.make,
    "train_hard": hard.train,
    "encode_hard": hard.encode,
}


def main() -> None:
    answer = os.dup(1)
    os.dup2(2, 1)
    spec = json.load(sys.stdin)
    result = JOBS[spec.pop("job")](**spec)
    result.setdefault("peak_megabytes", peak_megabytes())
    with os.fdopen(answer, "w") as out:
        json.dump(result, out)


if __name__ == "__main__":
    main()

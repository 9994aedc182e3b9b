"""How time and memory grow with the corpus, with the vocabulary and with threads."""

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import runner

CONTESTANTS = {"pickytok T=0.9": 3, "gigatoken": 1}
"""With how many repetitions at each point."""
STOP_AFTER = 60.0
"""Seconds; a point that takes longer is reported as that."""

Json: TypeAlias = dict[str, Any]


def point(files: Sequence[str], out: Path, vocab_size: int, threads: int, repeats: int) -> dict[str, list[Json]]:
    limits: dict[str, int | None] = {name: min(rounds, repeats) for name, rounds in CONTESTANTS.items()}

    def measure(name: str) -> Json:
        spec: Json = {"contestant": name, "files": files, "vocab_size": vocab_size, "out": str(out / "grown")}
        return runner.run("train", threads=threads, timeout=STOP_AFTER, **spec)

    return runner.alternate(repeats, limits, measure)


def against_corpus(files: Sequence[str], folder: Path, sizes: Sequence[float], vocab_size: int, repeats: int) -> Json:
    points = []
    for megabytes in sizes:
        target = folder / "cut"
        made = runner.must("cut", files=files, target=str(target), megabytes=megabytes)
        print(f" {megabytes:g} MB", file=sys.stderr)
        points.append({"x": made["bytes"], **made, "runs": point([str(target)], folder, vocab_size, 2, repeats)})
        target.unlink()
    return {"points": points, "vocab_size": vocab_size, "threads": 2}


def against_vocabulary(files: Sequence[str], folder: Path, sizes: Sequence[int], repeats: int) -> Json:
    points = []
    for size in sizes:
        print(f" vocabulary {size}", file=sys.stderr)
        points.append({"x": size, "runs": point(files, folder, size, 2, repeats)})
    return {"points": points, "bytes": total(files), "threads": 2}


def against_threads(files: Sequence[str], folder: Path, threads: Sequence[int], vocab_size: int, repeats: int) -> Json:
    points = []
    for count in threads:
        print(f" threads {count}", file=sys.stderr)
        points.append({"x": count, "runs": point(files, folder, vocab_size, count, repeats)})
    return {"points": points, "bytes": total(files), "vocab_size": vocab_size}


def total(files: Sequence[str]) -> int:
    return sum(Path(file).stat().st_size for file in files)


def curve(part: Json, name: str, key: str, *, with_duplicates: bool = True) -> list[tuple[float, float]]:
    """The medians at each point that worked; a vocabulary that training could not fill is left out."""
    points = []
    for at in part["points"]:
        runs = at["runs"].get(name, [])
        filled = all(run.get("stop_reason", "vocab_size") == "vocab_size" for run in runs)
        found = runner.values(runs, key)
        if found and filled and (with_duplicates or not at.get("duplicated")):
            points.append((float(at["x"]), statistics.median(found)))
    return points

"""Starts one process for each measurement, and sums up what they answer.

This process stays small: on Linux a child's `ru_maxrss` starts from that of the process which started it,
so corpora, arrays and plots are left to others.
"""

import json
import math
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

JOBS = Path(__file__).with_name("jobs.py")
TIMEOUT = 600.0

Json: TypeAlias = dict[str, Any]


def run(job: str, *, threads: int = 2, timeout: float = TIMEOUT, **spec: Any) -> Json:
    """Runs a job in a fresh process. What goes wrong there is an answer too: `{"error": ...}`."""
    if job in ("train", "encode"):
        spec["threads"] = threads
    environment = os.environ | {
        "RAYON_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false",
    }
    command = [sys.executable, str(JOBS)]
    question = json.dumps({"job": job} | spec)
    try:
        done = subprocess.run(
            command, input=question, capture_output=True, text=True, env=environment, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"stopped after {timeout:.0f} s"}
    if done.returncode:
        return {"error": last_line(done.stderr) or f"ended with status {done.returncode}"}
    answer: Json = json.loads(done.stdout)
    return answer


def must(job: str, **spec: Any) -> Json:
    """Runs a job that everything after it needs."""
    answer = run(job, **spec)
    if "error" in answer:
        sys.exit(f"{job} failed: {answer['error']}")
    return answer


def last_line(text: str) -> str:
    return next((line.strip()[:300] for line in reversed(text.splitlines()) if line.strip()), "")


def alternate(rounds: int, limits: Mapping[str, int | None], measure: Callable[[str], Json]) -> dict[str, list[Json]]:
    """Measures all contestants in turn, round after round; one that failed is not asked again."""
    runs: dict[str, list[Json]] = {name: [] for name in limits}
    for number in range(rounds):
        for name, limit in limits.items():
            failed = any("error" in answer for answer in runs[name])
            if failed or (limit is not None and number >= limit):
                continue
            answer = measure(name)
            runs[name].append(answer)
            said = answer.get("error") or next((f"{k} {v}" for k, v in answer.items() if "seconds" in k), "done")
            print(f"  {name}: {said}", file=sys.stderr, flush=True)
    return runs


def peak_megabytes() -> float:
    """The most memory that this process has had so far, mapped pages of files included."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6, 1)


# Sums


def good(runs: Iterable[Json]) -> list[Json]:
    return [answer for answer in runs if "error" not in answer]


def values(runs: Iterable[Json], key: str) -> list[float]:
    """The numbers under a key; of a list of repetitions inside one process, their median."""
    found = [answer[key] for answer in good(runs) if answer.get(key) not in (None, [])]
    return [statistics.median(value) if isinstance(value, list) else value for value in found]


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Round by round, as far as both went."""
    return [a / b for a, b in zip(ours, theirs, strict=False)]


def slope(points: Iterable[tuple[float, float]]) -> float | None:
    """The exponent of the power law through the points: the slope of the line through their logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    return statistics.linear_regression([x for x, _ in logs], [y for _, y in logs]).slope

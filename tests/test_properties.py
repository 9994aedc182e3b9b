"""The package against the oracle on thousands of small random corpora (PICKYTOK_FUZZ=N: on N of them)."""

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import fuzz
import pytest

CASES = int(os.environ.get("PICKYTOK_FUZZ", "20000"))
# Ordinary runs use the same seeds every time; long ones begin elsewhere, to see new cases.
FIRST_SEED = int(os.environ.get("PICKYTOK_FUZZ_SEED", "0"))
RARE = ["duplicate merges", "restorations", "double removals", "self-pair removals"]
CHUNK = 200


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where saving 40,000 models costs no disk access, if there is such a place."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@pytest.mark.timeout(max(600, CASES // 20))
def test_package_equals_oracle(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chunks = [
        range(first, min(first + CHUNK, FIRST_SEED + CASES)) for first in range(FIRST_SEED, FIRST_SEED + CASES, CHUNK)
    ]
    seen = Counter[str]()
    with ProcessPoolExecutor(max_workers=2, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(fuzz.check_many, chunk, folder) for chunk in chunks]
        try:
            for job in jobs:
                seen += job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    with capsys.disabled():
        print(f"\n{CASES} random corpora agree with the oracle; they held")
        for what, n in sorted(seen.items()):
            print(f"{n:>9} {what}")
    if CASES >= 20_000:
        assert {what: seen[what] for what in RARE if seen[what] < 100} == {}
        assert all(seen[f"stopped: {reason}"] >= 100 for reason in ("vocab_size", "exhausted", "min_frequency"))
        assert seen["cases where a special token was not made"] >= 100
        assert seen["cases with unknown characters in training"] >= 100

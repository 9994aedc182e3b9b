"""Times pickytok and its peers side by side: same text, same words, same vocabulary size.

Every measurement is a process of its own, and the contestants take turns, so that neither a warm cache
nor a busy moment of the machine favours one of them. What is timed is verified first: merges at T = 1,
ids, round trips. Results go to `benches/results/`, and from there into `docs/performance.md`.

    python benches/compare.py --corpus news.en.zst news.de.zst --growth --hard

Without a corpus, the sources of Python's standard library serve for a smoke run, which prints and writes nothing.
"""

import argparse
import dataclasses
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import growth
import hard
import peers
import report
import runner

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "performance.md"
JUDGE = "tokenizers"

Json: TypeAlias = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Settings:
    """How much of everything; megabytes are millions of bytes."""

    vocab_size: int = 32_768
    repeats: int = 3
    verify_megabytes: float = 20
    paper_megabytes: float = 1
    paper_vocab_size: int = 4096
    encode_megabytes: float = 60
    encode_check_megabytes: float = 4
    encode_calls: int = 4
    short_strings: int = 50_000
    big_vocab_size: int = 200_000
    growth_megabytes: tuple[float, ...] = (30, 60, 120, 240, 480, 600)
    growth_vocab_sizes: tuple[int, ...] = (8192, 16_384, 32_768, 65_536, 131_072, 262_144)
    hard_scale: float = 1.0


SMOKE = Settings(
    vocab_size=8192,
    repeats=2,
    verify_megabytes=2,
    paper_megabytes=0.2,
    paper_vocab_size=1024,
    encode_megabytes=3,
    encode_check_megabytes=1,
    encode_calls=3,
    short_strings=5000,
    big_vocab_size=20_000,
    growth_megabytes=(1, 2, 4, 8),
    growth_vocab_sizes=(2048, 4096, 8192),
    hard_scale=0.01,
)


@dataclasses.dataclass(frozen=True)
class Run:
    """What the parts share: the corpus as plain files, a folder for what they make, and the settings."""

    files: list[str]
    folder: Path
    settings: Settings

    def model(self, name: str) -> str:
        return str(self.folder / f"{name.replace(' ', '-')}.model")

    def models(self) -> Json:
        """Trained models in all formats; what an earlier part has trained is used again."""
        ours = {name: self.model(name) for name in peers.OURS}
        for name, path in ours.items():
            if not Path(path).exists():
                runner.must("train", contestant=name, files=self.files, vocab_size=self.settings.vocab_size, out=path)
        others = {key: str(self.folder / f"vanilla.{key}") for key in ("ranks", "merges")}
        if not Path(others["ranks"]).exists():
            runner.must("other_formats", ours=ours["pickytok T=1.0"], **others)
        return {"ours": ours, **others}


# Training


def verify_training(run: Run) -> Json:
    """Compares what everyone made of the same sample with our merges at T = 1; the judge's must be equal."""
    sample = str(run.folder / "sample")
    size = runner.must("cut", files=run.files, target=sample, megabytes=run.settings.verify_megabytes)["bytes"]
    ours = str(run.folder / "ours.made")
    spec: Json = {"files": [sample], "vocab_size": run.settings.vocab_size, "out": str(run.folder / "verified")}
    runner.must("train", contestant="pickytok T=1.0", made=ours, **spec)
    verdicts: Json = {}
    for name in (name for name in peers.TRAINERS if name not in (*peers.OURS, "sentencepiece")):
        theirs = str(run.folder / "theirs.made")
        answer = runner.run("train", contestant=name, made=theirs, whole=True, **spec)
        verdicts[name] = answer if "error" in answer else runner.must("compare_made", ours=ours, theirs=theirs)
        print(f"  verified {name}: {verdicts[name]}", file=sys.stderr, flush=True)
    if not verdicts[JUDGE].get("equal", "error" in verdicts[JUDGE]):
        sys.exit(f"merges at T = 1 differ from those of tokenizers: {verdicts[JUDGE]}")
    return {"bytes": size, "verdicts": verdicts}


def time_training(run: Run) -> Json:
    verified = verify_training(run)
    limits = {name: trainer.rounds for name, trainer in peers.TRAINERS.items()}

    def measure(name: str) -> Json:
        vocab_size = run.settings.vocab_size
        return runner.run("train", contestant=name, files=run.files, vocab_size=vocab_size, out=run.model(name))

    runs = runner.alternate(run.settings.repeats, limits, measure)
    return {"verified": verified, "runs": runs, "paper": time_paper(run)}


def time_paper(run: Run) -> Json:
    """The other implementation of Picky BPE, in pure Python, on a sample that it can manage."""
    sample, settings = str(run.folder / "paper"), run.settings
    size = runner.must("cut", files=run.files, target=sample, megabytes=settings.paper_megabytes)["bytes"]
    made = {name: str(run.folder / f"{name}.made") for name in peers.PAPER}

    def measure(name: str) -> Json:
        spec: Json = {"files": [sample], "vocab_size": settings.paper_vocab_size, "out": run.model(f"paper {name}")}
        return runner.run("train", contestant=name, paper=True, made=made[name], **spec)

    runs = runner.alternate(1, dict.fromkeys(peers.PAPER), measure)
    plain = made["pickytok T=1.0"], made["pickybpe_bauwenst T=1.0"]
    compared = (
        runner.run("compare_made", ours=plain[0], theirs=plain[1]) if all(Path(p).exists() for p in plain) else {}
    )
    return {"bytes": size, "vocab_size": settings.paper_vocab_size, "runs": runs, "compared": compared}


# Encoding, decoding, loading


def time_encoding(run: Run) -> Json:
    models, settings = run.models(), run.settings
    offers = {name: runner.run("kinds", contestant=name, models=models) for name in peers.ENCODERS}
    offered = [
        (name, kind)
        for kind in offers["pickytok T=1.0"]["batch"]
        for name in peers.ENCODERS
        if kind in offers[name].get("batch", ["list[str]"])
    ]
    sample = str(run.folder / "encode")
    runner.must("cut", files=run.files, target=sample, megabytes=settings.encode_megabytes)
    inputs = {"files": [sample]}
    checks = []
    for name, kind in (pair for pair in offered if pair[0] in peers.VANILLA):
        spec: Json = {"megabytes": settings.encode_check_megabytes, "calls": 1, "digest": True}
        files = inputs.get(kind, run.files)
        check = runner.run("encode", contestant=name, kind=kind, files=files, models=models, threads=1, **spec)
        checks.append({"contestant": name, "kind": kind} | check)
    cases = [(name, kind, threads) for name, kind in offered for threads in (1, 2)]
    named = {f"{name}, {kind}, {threads} threads": (name, kind, threads) for name, kind, threads in cases}

    def measure(case: str) -> Json:
        name, kind, threads = named[case]
        megabytes = settings.encode_megabytes * peers.ENCODERS[name].share
        spec: Json = {"contestant": name, "kind": kind, "threads": threads, "megabytes": megabytes}
        files = inputs.get(kind, run.files)
        return runner.run("encode", **spec, files=files, models=models, calls=settings.encode_calls)

    limits = {case: peers.ENCODERS[name].rounds for case, (name, _, _) in named.items()}
    runs = runner.alternate(settings.repeats, limits, measure)
    rows = [
        {"contestant": name, "kind": kind, "threads": threads, "runs": runs[case]}
        for case, (name, kind, threads) in named.items()
    ]
    return {"checks": checks, "cases": rows}


def time_short(run: Run) -> Json:
    models = run.models()
    offers = {name: runner.run("kinds", contestant=name, models=models).get("one", ["?"]) for name in peers.ENCODERS}
    named = {f"{name}, {method}": (name, method) for name, methods in offers.items() for method in methods}

    def measure(case: str) -> Json:
        name, method = named[case]
        spec: Json = {"contestant": name, "method": method, "count": run.settings.short_strings, "calls": 5}
        return runner.run("encode_short", files=run.files, models=models, **spec)

    limits = {case: peers.ENCODERS[name].rounds for case, (name, _) in named.items()}
    runs = runner.alternate(run.settings.repeats, limits, measure)
    return {"cases": [{"contestant": n, "method": method, "runs": runs[case]} for case, (n, method) in named.items()]}


def time_decoding(run: Run) -> Json:
    models = run.models()
    offers = {name: runner.run("kinds", contestant=name, models=models) for name in peers.ENCODERS}
    limits: dict[str, int | None] = {name: None for name, offer in offers.items() if offer.get("decode", True)}

    def measure(name: str) -> Json:
        count = run.settings.short_strings
        return runner.run("decode", contestant=name, files=run.files, count=count, models=models, calls=5)

    return {"runs": runner.alternate(run.settings.repeats, limits, measure)}


def time_loading(run: Run) -> Json:
    models: dict[str, str] = run.models()["ours"]
    settings = run.settings
    big = run.model("big")
    trained = runner.run(
        "train", contestant="pickytok T=0.9", files=run.files, vocab_size=settings.big_vocab_size, out=big
    )
    if "error" not in trained:
        models = models | {"big": big}

    def measure(name: str) -> Json:
        return runner.run("load", model=models[name], calls=5)

    runs = runner.alternate(settings.repeats, dict.fromkeys(models), measure)
    return {"runs": runs, "big": {"vocab_size": settings.big_vocab_size, "trained": trained}, "import": time_import()}


def time_import() -> Json:
    """Whole processes, in turn: bare Python, and Python that imports the package."""
    seconds: dict[str, list[float]] = {"pass": [], "import numpy": [], "import pickytok": []}
    for _ in range(15):
        for code, found in seconds.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            found.append(round(time.perf_counter() - start, 5))
    return seconds


# Growth and hard inputs


def time_growth(run: Run) -> Json:
    settings = run.settings
    size, repeats = settings.vocab_size, settings.repeats
    threads = [count for count in (1, 2, 4, 8) if count <= (os.cpu_count() or 1)]
    return {
        "corpus": growth.against_corpus(run.files, run.folder, settings.growth_megabytes, size, repeats),
        "vocabulary": growth.against_vocabulary(run.files, run.folder, settings.growth_vocab_sizes, repeats),
        "threads": growth.against_threads(run.files, run.folder, threads, size, repeats),
    }


def time_hard(run: Run) -> Json:
    settings = run.settings
    return {"cases": hard.measure(run.files, run.folder, settings.hard_scale)}


PARTS: dict[str, Callable[[Run], Json]] = {
    "train": time_training,
    "encode": time_encoding,
    "short": time_short,
    "decode": time_decoding,
    "load": time_loading,
    "growth": time_growth,
    "hard": time_hard,
}
ON_DEMAND = ("growth", "hard")


# The whole


def machine() -> Json:
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return {
        "cpu": names[0].partition(":")[2].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "commit": commit(),
        "versions": {k: v for k, v in runner.must("versions").items() if k != "peak_megabytes"},
    }


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def gather(corpus: Sequence[Path], folder: Path) -> tuple[list[str], list[Json]]:
    """The corpus as plain files in the folder, and what they are."""
    if not corpus:
        target = str(folder / "corpus0")
        return [target], [runner.must("python_sources", target=target)]
    files = [str(folder / f"corpus{i}") for i in range(len(corpus))]
    facts = [runner.must("unpack", source=str(p), target=file) for p, file in zip(corpus, files, strict=True)]
    return files, [{k: v for k, v in fact.items() if k != "peak_megabytes"} for fact in facts]


def measure(corpus: Sequence[Path], settings: Settings, parts: Sequence[str], earlier: Json) -> Json:
    results: Json = {"parts": dict(earlier.get("parts", {}))}
    results["date"] = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    results["machine"] = machine()
    results["settings"] = dataclasses.asdict(settings)
    with tempfile.TemporaryDirectory() as name:
        files, results["corpus"] = gather(corpus, Path(name))
        run = Run(files, Path(name), settings)
        for part in parts:
            print(f"{part}:", file=sys.stderr, flush=True)
            start = time.monotonic()
            result = PARTS[part](run)
            results["parts"][part] = result | {"took_seconds": round(time.monotonic() - start, 1), "commit": commit()}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description="Times pickytok against other tokenizers.")
    parser.add_argument("--corpus", type=Path, nargs="+", default=[], metavar="FILE", help="text files, plain or .zst")
    parser.add_argument("--growth", action="store_true", help="also against corpus size, vocabulary size, threads")
    parser.add_argument("--hard", action="store_true", help="also the hard inputs")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"these parts: {', '.join(PARTS)}")
    parser.add_argument("--repeats", type=int, help="rounds (3)")
    parser.add_argument("--vocab-size", type=int, help="tokens in all (32768)")
    parser.add_argument("--smoke", action="store_true", help="small settings on a corpus too; prints, writes nothing")
    parser.add_argument("--update", type=Path, metavar="FILE", help="keep the other parts of these results")
    parser.add_argument(
        "--render", type=Path, metavar="FILE", help="write the page from these results; measure nothing"
    )
    args = parser.parse_args()
    if args.render:
        report.write(json.loads(args.render.read_text()), args.render.name, PAGE)
        return
    smoke = args.smoke or not args.corpus
    given = {"vocab_size": args.vocab_size, "repeats": args.repeats}
    settings = dataclasses.replace(SMOKE if smoke else Settings(), **{k: v for k, v in given.items() if v is not None})
    parts = args.only or [p for p in PARTS if p not in ON_DEMAND or getattr(args, p)]
    earlier = json.loads(args.update.read_text()) if args.update else {}
    results = measure(args.corpus, settings, parts, earlier)
    if smoke:
        print(report.render(results, None))
        return
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{results['date']}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    report.write(results, path.name, PAGE)
    print(f"wrote {path.relative_to(HERE.parent)} and {PAGE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()

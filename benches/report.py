"""Writes `docs/performance.md` from results: tables between two marks, plots beside them."""

import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import goals
import growth
import hard
import peers
from goals import number, spread
from runner import good, ratios, values

BEGIN, END = "<!-- written by benches/compare.py: begin -->", "<!-- written by benches/compare.py: end -->"
REFERENCE = "pickytok T=0.9"

Json: TypeAlias = dict[str, Any]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; columns after the first are numbers where they look like it."""
    body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    numeric = [
        any(row[i] for row in body) and all(row[i][:1].isdigit() or row[i] in ("–", "") for row in body)
        for i in range(len(head))
    ]
    rule = ["--:" if is_number else "---" for is_number in numeric]
    return "\n".join(f"| {' | '.join(row)} |" for row in [list(head), rule, *body])


def error_of(runs: Iterable[Json]) -> str:
    return next((f"failed: {run['error']}" for run in runs if "error" in run), "")


def notes(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


# One function for each part


def heading(results: Json, source: str | None) -> str:
    at = results["machine"]
    corpus = ", ".join(f"`{c['name']}` ({c['bytes'] / 1e6:.1f} MB, sha256 {c['sha256']}…)" for c in results["corpus"])
    versions = ", ".join(f"{name} {version}" for name, version in at["versions"].items())
    lines = [
        f"Measured {results['date']} on {at['cpu']}, {at['cores']} cores, {at['system']}, Python {at['python']}, "
        f"commit `{at['commit']}`, load average at the start {at['load_average'][0]}.",
        f"Corpus: {corpus}.",
        f"Versions: {versions}.",
        f"Vocabulary {results['settings']['vocab_size']:,}, GPT-2 words, two threads unless said otherwise; "
        "medians, with the range in brackets; MB are millions of bytes.",
    ]
    if source:
        lines.append(f"All raw numbers: [`benches/results/{source}`](../benches/results/{source}).")
    return "\n".join(f"- {line}" for line in lines)


def goal_table(parts: Json) -> str:
    words = {True: "met", False: "**not met**", None: "–"}
    rows = [(goal.figure, goal.goal, goal.measured, words[goal.met]) for goal in goals.all_goals(parts)]
    return "## Goals\n\n" + table(("figure", "goal", "measured", ""), rows)


def verified(verdict: Json | None) -> str:
    if verdict is None:
        return ""
    if "error" in verdict:
        return f"not verified: {verdict['error']}"
    if verdict["equal"]:
        return f"{verdict['compared']} equal"
    if not verdict["not_shared"]:
        return f"same tokens, order differs from {verdict['first_difference']:,} on"
    return f"differs from {verdict['first_difference']:,} on, {verdict['not_shared']:,} tokens not shared"


def train_section(part: Json, results: Json) -> str:
    size = sum(corpus["bytes"] for corpus in results["corpus"])
    verdicts = part["verified"]["verdicts"]
    reference = values(part["runs"][REFERENCE], "seconds")
    rows = []
    for name, runs in part["runs"].items():
        seconds = values(runs, "seconds")
        speed = number(size / 1e6 / statistics.median(seconds)) if seconds else "–"
        check = "" if name in peers.OURS else verified(verdicts.get(name))
        note = notes(error_of(runs), check, peers.TRAINERS[name].note)
        peak = spread(values(runs, "peak_megabytes"))
        rows.append((name, spread(seconds), speed, spread(ratios(seconds, reference)), peak, note))
    judge = verdicts["tokenizers"]
    return "\n\n".join(
        [
            "## Training",
            f"From files to a model. Verified first on {part['verified']['bytes'] / 1e6:.0f} MB: our merges at T = 1.0 "
            f"against `tokenizers`, given whole documents: {verified(judge)} ({judge.get('count', 0):,}). The notes "
            "say how the others compare there, given whole documents too; timed, they read as their notes say.",
            table(("", "seconds", "MB/s", f"times {REFERENCE}", "peak MB", "notes"), rows),
            paper_section(part["paper"]),
        ]
    )


def paper_section(part: Json) -> str:
    rows = [
        (name, spread(values(runs, "seconds")), spread(values(runs, "peak_megabytes")), error_of(runs))
        for name, runs in part["runs"].items()
    ]
    check = f" At T = 1.0: {verified(part['compared'])}." if part["compared"].get("compared") else ""
    return (
        f"The other implementation of Picky BPE, on {part['bytes'] / 1e6:.1f} MB, characters, white-space words, "
        f"vocabulary {part['vocab_size']:,}.{check}\n\n" + table(("", "seconds", "peak MB", ""), rows)
    )


def encode_section(part: Json, results: Json) -> str:
    ours = part["checks"][0]
    said = []
    for check in part["checks"]:
        name = check["contestant"] if check["kind"] == ours["kind"] else f"{check['contestant']} ({check['kind']})"
        if "error" in check:
            said.append(f"{name} failed: {check['error']}")
        elif check["digest"] != ours["digest"]:
            said.append(f"**{name} differs** ({check['tokens']:,} tokens instead of {ours['tokens']:,})")
        else:
            said.append(f"{name} {check['tokens']:,} tokens")
    rows = []
    for case in part["cases"]:
        name, kind, threads = case["contestant"], case["kind"], case["threads"]
        warm, cold = (
            goals.speeds(results["parts"], name, threads, key, kind) for key in ("warm_seconds", "cold_seconds")
        )
        peers_speed = goals.speeds(results["parts"], "gigatoken", threads, kind=kind)
        size = good(case["runs"])[0]["bytes"] / 1e6 if good(case["runs"]) else 0
        note = notes(error_of(case["runs"]), peers.ENCODERS[name].output, f"{size:.1f} MB" if size else "")
        ratio = spread(ratios(warm, peers_speed))
        rows.append((name, f"`{kind}`", str(threads), spread(warm), spread(cold), ratio, note))
    head = (
        "",
        "input",
        "threads",
        "MB/s, later calls",
        "MB/s, first call",
        "times gigatoken, later calls",
        "output, sample",
    )
    return "\n\n".join(
        [
            "## Encoding",
            "Lines of the corpus, all in one call. The first call in a fresh process finds empty caches, imports done; "
            f"later calls repeat it. Ids were compared first, on {ours['bytes'] / 1e6:.1f} MB with the vocabulary of "
            f"T = 1.0: {', '.join(said)}.",
            table(head, rows),
        ]
    )


def short_section(part: Json) -> str:
    first = next(run for case in part["cases"] for run in good(case["runs"]))
    by_name = {(case["contestant"], case["method"]): values(case["runs"], "warm_seconds") for case in part["cases"]}
    peer = by_name.get(("tiktoken", "encode_ordinary"), [])
    rows = []
    for case in part["cases"]:
        runs = good(case["runs"])
        seconds = by_name[case["contestant"], case["method"]]
        differs = case["contestant"] in peers.VANILLA and runs and runs[0]["digest"] != first["digest"]
        cold = values(case["runs"], "cold_seconds")
        micros, first_micros = ([value / first["strings"] * 1e6 for value in side] for side in (seconds, cold))
        note = notes(error_of(case["runs"]), "**ids differ**" if differs else "")
        cells = (spread(micros), spread(first_micros), spread(ratios(peer, seconds)))
        rows.append((case["contestant"], f"`{case['method']}`", *cells, note))
    return "\n\n".join(
        [
            "## Single short strings",
            f"{first['strings']:,} strings of 20 to 200 characters ({first['bytes'] / 1e6:.1f} MB), one call each, "
            "lists out; all but T = 0.9 and T = 0.6 have the same vocabulary, and their ids were compared.",
            table(
                ("", "call", "µs a string", "µs, first pass", "times as fast as tiktoken's `encode_ordinary`", ""), rows
            ),
        ]
    )


def decode_section(part: Json) -> str:
    rows = []
    for name, runs in part["runs"].items():
        cells = []
        for key in ("short_seconds", "long_seconds"):
            cells.append(spread([run["bytes"] / 1e6 / statistics.median(run[key]) for run in good(runs)]))
        rows.append((name, *cells, error_of(runs)))
    head = ("", "MB/s, short texts one by one", "MB/s, one long text", "")
    return "## Decoding\n\nLists of ids to `str`; a text that does not come back is a failure.\n\n" + table(head, rows)


def load_section(part: Json) -> str:
    rows = []
    for name, runs in part["runs"].items():
        label = f"T = 0.9, {part['big']['vocab_size']:,} wanted" if name == "big" else name
        firsts = [run["seconds"][0] * 1000 for run in good(runs)]
        later = [statistics.median(run["seconds"][1:]) * 1000 for run in good(runs)]
        facts = next(
            (
                f"{run['vocab_size']:,} tokens, {run['events']:,} events, {run['bytes'] / 1e6:.1f} MB"
                for run in good(runs)
            ),
            "",
        )
        rows.append((label, spread(firsts), spread(later), notes(error_of(runs), facts)))
    trained = part["big"]["trained"]
    if trained.get("stop_reason") != "vocab_size":
        said = trained.get("error") or f"the corpus gave only {trained['vocab_size']:,} tokens"
        rows.append((f"{part['big']['vocab_size']:,} tokens", "–", "–", f"not reached: {said}"))
    imports = part["import"]
    best = {code: min(seconds) * 1000 for code, seconds in imports.items()}
    said = (
        f"Whole processes, the best of {len(imports['pass'])}: bare Python {number(best['pass'])} ms, with "
        f"`import numpy` {number(best['import numpy'])} ms, with `import pickytok` "
        f"{number(best['import pickytok'])} ms."
    )
    return "## Loading\n\n" + table(("model", "ms, first load", "ms, later loads", ""), rows) + f"\n\n{said}"


def growth_section(part: Json, images: bool) -> str:
    titles = {"corpus": "corpus size", "vocabulary": "vocabulary size", "threads": "threads"}
    blocks = ["## Growth"]
    for key, title in titles.items():
        blocks.append(f"### Against {title}")
        if images:
            blocks.append(f"![time and memory against {title}](images/growth-{key}.svg)")
        blocks += [growth_table(part[key], key), slopes(part[key], key)]
    return "\n\n".join(block for block in blocks if block)


def growth_table(part: Json, key: str) -> str:
    rows = []
    for at in part["points"]:
        label = f"{at['x'] / 1e6:.0f} MB" if key == "corpus" else f"{at['x']:,}"
        cells, said = [], ["repeats its beginning" if at.get("duplicated") else ""]
        for name, runs in at["runs"].items():
            cells += [spread(values(runs, "seconds")), spread(values(runs, "peak_megabytes"))]
            short = next((run for run in good(runs) if run.get("stop_reason", "vocab_size") != "vocab_size"), None)
            said += [f"{name} {error_of(runs)}" if error_of(runs) else ""]
            said += [f"training ended at {short['vocab_size']:,} tokens" if short else ""]
        rows.append((label, *cells, notes(*said)))
    heads = [f"{name}, {unit}" for name in growth.CONTESTANTS for unit in ("seconds", "peak MB")]
    return table(("", *heads, ""), rows)


def slopes(part: Json, key: str) -> str:
    if key == "threads":
        return ""
    said = []
    for name in growth.CONTESTANTS:
        for what, field in (("time", "seconds"), ("memory", "peak_megabytes")):
            alone = goals.slope_of(part, name, field, with_duplicates=False)
            if alone is not None:
                said.append(f"{name} {what} {alone:.2f}")
    return f"Slopes of the logarithms, without points that repeat text: {', '.join(said)}." if said else ""


def hard_section(part: Json) -> str:
    rows = []
    for name, case in part["cases"].items():
        made = case["input"]
        size = f"{made['bytes'] / 1e6:.1f} MB" if "bytes" in made else made["error"]
        cells = []
        for action in ("train", "encode"):
            answer = case.get(action, {"error": "not reached"})
            cells.append(goals.verdict(answer) + ("" if goals.within_limits(answer) else " **over**"))
        rows.append((name, size, *cells))
    limit = f"{hard.SECONDS_LIMIT:g} s and {hard.MEGABYTES_LIMIT:,.0f} MB"
    said = (
        f"Limit for each: {limit}, Python and the text itself included. T = 0.9, each in its own process: files to a "
        "saved model, then each file as one `str` to numpy with that model; a text that does not come back fails."
    )
    return f"## Hard inputs\n\n{said}\n\n" + table(("input", "size", "training", "encoding"), rows)


# The page


def render(results: Json, source: str | None) -> str:
    parts = results["parts"]
    blocks = [heading(results, source), goal_table(parts)]
    if "train" in parts:
        blocks.append(train_section(parts["train"], results))
    if "encode" in parts:
        blocks.append(encode_section(parts["encode"], results))
    if "short" in parts:
        blocks.append(short_section(parts["short"]))
    if "decode" in parts:
        blocks.append(decode_section(parts["decode"]))
    if "load" in parts:
        blocks.append(load_section(parts["load"]))
    if "growth" in parts:
        blocks.append(growth_section(parts["growth"], images=source is not None))
    if "hard" in parts:
        blocks.append(hard_section(parts["hard"]))
    return "\n\n".join(blocks)


def between_marks(page: str, text: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page lacks its marks: {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def write(results: Json, source: str, page: Path) -> None:
    if "growth" in results["parts"]:
        try:
            import plots
        except ImportError as error:
            print(f"no plots: {error}", file=sys.stderr)
        else:
            plots.draw(results["parts"]["growth"], page.parent / "images")
    text = between_marks(page.read_text(encoding="utf-8"), render(results, source))
    page.write_text(text, encoding="utf-8", newline="\n")

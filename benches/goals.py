"""The goals of the project beside what was measured."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import growth
import hard
from runner import ratios, slope, values

Json: TypeAlias = dict[str, Any]
Numbers: TypeAlias = Sequence[float]

NOT_MEASURED = "not measured"


class Goal(NamedTuple):
    """`met` is None where nothing was measured."""

    figure: str
    goal: str
    measured: str
    met: bool | None


def number(value: float) -> str:
    """Three digits, or all of the whole ones."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def spread(found: Numbers) -> str:
    """The median, with the range where there is one."""
    if not found:
        return "–"
    median, low, high = map(number, (statistics.median(found), min(found), max(found)))
    return median if low == high else f"{median} ({low}–{high})"


def at_most(figure: str, limit: float, found: Numbers, unit: str = "", stretch: float | None = None) -> Goal:
    goal = f"at most {limit:g}{unit}" + (f" (stretch {stretch:g}{unit})" if stretch else "")
    if not found:
        return Goal(figure, goal, NOT_MEASURED, None)
    return Goal(figure, goal, spread(found) + unit, statistics.median(found) <= limit)


def at_least(figure: str, limit: float, found: Numbers, unit: str = " times") -> Goal:
    goal = f"at least {limit:g}{unit}"
    if not found:
        return Goal(figure, goal, NOT_MEASURED, None)
    return Goal(figure, goal, spread(found) + unit, statistics.median(found) >= limit)


def all_goals(parts: Json) -> list[Goal]:
    return [*training(parts), *encoding(parts), *single(parts), *models(parts), *grown(parts), *hard_inputs(parts)]


def training(parts: Json) -> list[Goal]:
    runs = parts.get("train", {}).get("runs", {})

    def seconds(name: str) -> list[float]:
        return values(runs.get(name, []), "seconds")

    def against(name: str, other: str) -> list[float]:
        return ratios(seconds(f"pickytok {name}"), seconds(other))

    peak = values(runs.get("pickytok T=0.9", []), "peak_megabytes")
    return [
        at_most(
            "training at T = 0.9: time, of gigatoken's without removals", 0.5, against("T=0.9", "gigatoken"), "", 0.4
        ),
        at_most("training at T = 0.9: time, of `tokenizers`'", 0.1, against("T=0.9", "tokenizers")),
        at_most("training at T = 0.9: peak memory", 400, peak, " MB"),
        at_most("training at T = 0.9: time, of T = 1.0's", 1.10, against("T=0.9", "pickytok T=1.0")),
        at_most("training at T = 0.6: time, of T = 1.0's", 1.4, against("T=0.6", "pickytok T=1.0")),
    ]


def speeds(parts: Json, name: str, threads: int, key: str = "warm_seconds", kind: str = "list[str]") -> list[float]:
    """Megabytes a second, one number a process."""
    wanted = (name, kind, threads)
    for case in parts.get("encode", {}).get("cases", []):
        if (case["contestant"], case["kind"], case["threads"]) == wanted and (found := values(case["runs"], key)):
            return [case["runs"][0]["bytes"] / 1e6 / seconds for seconds in found]
    return []


def encoding(parts: Json) -> list[Goal]:
    rows = []
    for key, state in (("warm_seconds", "later calls"), ("cold_seconds", "first call")):
        ours = speeds(parts, "pickytok T=0.9", 1, key)
        for peer, limit in (("gigatoken", 1.2), ("tiktoken", 5)):
            title = f"encoding `list[str]` at T = 0.9, one thread, {state}: speed against {peer}"
            rows.append(at_least(title, limit, ratios(ours, speeds(parts, peer, 1, key))))
    for kind, limit in (("list[str]", 1.5), ("list[bytes]", 1.8), ("files", 1.8)):
        one, two = (speeds(parts, "pickytok T=0.9", threads, kind=kind) for threads in (1, 2))
        rows.append(at_least(f"encoding `{kind}`: two threads against one", limit, ratios(two, one)))
    picky, plain = (speeds(parts, f"pickytok T={t}", 1) for t in ("0.6", "1.0"))
    rows.append(at_least("encoding at T = 0.6: speed against T = 1.0", 0.9, ratios(picky, plain)))
    return rows


def single(parts: Json) -> list[Goal]:
    rows = []
    cases = parts.get("short", {}).get("cases", [])
    found = {f"{case['contestant']} {case['method']}": values(case["runs"], "warm_seconds") for case in cases}
    ours = found.get("pickytok T=0.9 encode", [])
    for method in ("encode_ordinary", "encode"):
        title = f"`encode` of short strings, lists out: speed against tiktoken's `{method}`"
        rows.append(at_least(title, 3, ratios(found.get(f"tiktoken {method}", []), ours)))
    runs = parts.get("decode", {}).get("runs", {})
    for key, what in (("short_seconds", "short texts"), ("long_seconds", "a long text")):
        times = [values(runs.get(name, []), key) for name in ("tiktoken", "pickytok T=0.9")]
        rows.append(at_least(f"`decode` of {what}: speed against tiktoken", 1, ratios(*times)))
    return rows


def models(parts: Json) -> list[Goal]:
    part = parts.get("load", {})
    runs = part.get("runs", {})

    def first(name: str) -> list[float]:
        """The first load of each process: what a user waits for."""
        return [run["seconds"][0] * 1000 for run in runs.get(name, []) if "error" not in run]

    full = part.get("big", {}).get("trained", {}).get("stop_reason") == "vocab_size"
    imports = part.get("import", {})
    above = [(min(imports["import pickytok"]) - min(imports["pass"])) * 1000] if imports else []
    return [
        at_most("loading a model of 32k tokens", 30, first("pickytok T=0.9"), " ms"),
        at_most("loading a model of 200k tokens", 200, first("big") if full else [], " ms"),
        at_most("`import pickytok` above bare Python", 50, above, " ms"),
    ]


def slope_of(part: Json, name: str, key: str = "seconds", *, with_duplicates: bool = True) -> float | None:
    return slope(growth.curve(part, name, key, with_duplicates=with_duplicates)) if part else None


def grown(parts: Json) -> list[Goal]:
    part = parts.get("growth", {})
    rows = []
    for key, limit, what in (("corpus", 1.1, "corpus size"), ("vocabulary", 0.5, "vocabulary size")):
        found = slope_of(part.get(key, {}), "pickytok T=0.9", with_duplicates=False)
        title = f"training time against {what}: slope of the logarithms"
        rows.append(at_most(title, limit, [] if found is None else [found]))
    return rows


def within_limits(answer: Json) -> bool:
    fast: bool = answer.get("seconds", float("inf")) <= hard.SECONDS_LIMIT
    small: bool = answer.get("peak_megabytes", float("inf")) <= hard.MEGABYTES_LIMIT
    return fast and small


def hard_inputs(parts: Json) -> list[Goal]:
    cases = parts.get("hard", {}).get("cases", {})
    rows = []
    goal = f"{hard.SECONDS_LIMIT:g} s and {hard.MEGABYTES_LIMIT / 1000:g} GB"
    for name, case in cases.items():
        said = [f"{action} {verdict(case.get(action, case['input']))}" for action in ("train", "encode")]
        met = all(within_limits(case.get(action, {})) for action in ("train", "encode"))
        rows.append(Goal(f"hard input: {name}", goal, ", ".join(said), met))
    return rows or [Goal("hard inputs", goal, NOT_MEASURED, None)]


def verdict(answer: Json) -> str:
    if "seconds" not in answer:
        return str(answer.get("error", "not reached"))
    return f"{number(answer['seconds'])} s and {answer['peak_megabytes']:.0f} MB"

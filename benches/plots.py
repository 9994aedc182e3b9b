"""Plots of growth: time, with both axes logarithmic, beside memory from zero."""

from pathlib import Path
from typing import Any, TypeAlias

import growth
import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

Json: TypeAlias = dict[str, Any]

# Okabe and Ito's colours, told apart by everyone, and different marks and lines besides.
LOOKS: dict[str, Json] = {
    "pickytok T=0.9": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "gigatoken": {"color": "#D55E00", "marker": "s", "linestyle": "--"},
}
AXES = {"corpus": "corpus, MB", "vocabulary": "vocabulary, thousands of tokens", "threads": "threads"}
UNITS = {"corpus": 1e6, "vocabulary": 1024.0, "threads": 1.0}
PANELS = {"seconds": "time, s", "peak_megabytes": "peak memory, MB"}


def draw(part: Json, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # The same results give the same bytes: no random ids, no date.
    with mpl.rc_context({"svg.hashsalt": "pickytok", "font.size": 10, "svg.fonttype": "none"}):
        for key in AXES:
            figure(part[key], key).savefig(folder / f"growth-{key}.svg", metadata={"Date": None})


def figure(part: Json, key: str) -> Figure:
    drawn = Figure(figsize=(9, 3.6), layout="constrained", facecolor="white")
    for number, (field, label) in enumerate(PANELS.items()):
        axes: Any = drawn.add_subplot(1, 2, number + 1)
        ticks: set[float] = set()
        for name, look in LOOKS.items():
            curve = [(x / UNITS[key], y) for x, y in growth.curve(part, name, field)]
            if curve:
                axes.plot(*zip(*curve, strict=True), label=name, linewidth=2, markersize=6, **look)
                ticks |= {x for x, _ in curve}
        if key != "threads":
            axes.set_xscale("log")
        if key != "threads" and field == "seconds":
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
            axes.yaxis.set_minor_formatter(FuncFormatter(minor_label))
        else:
            axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(FixedLocator(sorted(ticks)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(AXES[key])
        axes.set_ylabel(label)
        axes.grid(visible=True, which="major", color="#cccccc", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        if number == 0:
            axes.legend(frameon=False)
    return drawn


def minor_label(y: float, _: object) -> str:
    """Between powers of ten, two and five are named."""
    digits = f"{y:e}"
    return f"{y:g}" if digits[0] in "25" and not digits[2:8].strip("0") else ""

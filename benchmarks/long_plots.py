"""Draws what `long_record.py` has measured: two SVG files that look alike each time and on light and dark pages."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.long_record import Sample

PLOTS = {"cost_per_call.svg": "Cost per call", "memory_over_calls.svg": "Memory over calls"}
_GREY = "#808080"  # readable on white and on black
_COLOURS = {"plain": "#808080", "lens": "#2f81f7", "command": "#db6d28", "journal": "#3fb950"}
_STYLE = {
    "svg.hashsalt": "tensorlens",
    "svg.fonttype": "none",  # text stays text: small files
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _GREY),
}


def draw(samples: list[Sample], folder: Path) -> None:
    """Draws the two plots. Does nothing without matplotlib, which `pip install -e '.[bench]'` brings."""
    try:
        matplotlib, pyplot = map(import_module, ("matplotlib", "matplotlib.pyplot"))
    except ImportError:
        print("the plots are not drawn: matplotlib is not installed")
        return
    matplotlib.use("svg")
    with pyplot.rc_context(_STYLE):
        for name, (label, lines) in zip(PLOTS, (_cost(samples), _memory(samples)), strict=True):
            figure, axes = pyplot.subplots(figsize=(7, 3.2), layout="constrained")
            for title, colour, x, y in lines:
                axes.plot(x, y, color=colour, linewidth=1.5, label=title)
            axes.set(xlabel="calls, millions", ylabel=label, ylim=(0, None), xlim=(0, None))
            axes.grid(color=_GREY, alpha=0.25, linewidth=0.5)
            axes.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
            figure.savefig(folder / name, transparent=True, metadata={"Date": None})
            pyplot.close(figure)


Line = tuple[str, str, list[float], list[float]]


def _cost(samples: list[Sample]) -> tuple[str, list[Line]]:
    lines = []
    for run, title in (("plain", "plain"), ("lens", "under the lens")):
        x, y = _costs([each for each in samples if each.run == run])
        lines.append((title, _COLOURS[run], x, y))
    return "microseconds a call", lines


def _costs(samples: list[Sample]) -> tuple[list[float], list[float]]:
    """Returns the calls in millions, and what each took in microseconds since the sample before."""
    x, y = [], []
    first = {sample.calls: sample for sample in reversed(samples)}  # of several after the same number of calls
    for before, after in pairwise(sorted(first.values(), key=lambda sample: sample.calls)):
        x.append(after.calls / 1e6)
        y.append(1e6 * (after.seconds - before.seconds) / (after.calls - before.calls))
    return x, y


def _memory(samples: list[Sample]) -> tuple[str, list[Line]]:
    lines: list[Line] = []
    series: tuple[Any, ...] = (
        ("plain", "program", "program, plain", "plain"),
        ("lens", "program", "program, under the lens", "lens"),
        ("lens", "command", "the command's own process", "command"),
        ("lens", "journal", "journal, on the disk", "journal"),
    )
    for run, name, title, colour in series:
        found = [each for each in samples if each.run == run and (name == "journal" or getattr(each, name))]
        lines.append(
            (title, _COLOURS[colour], [each.calls / 1e6 for each in found], [getattr(each, name) for each in found])
        )
    return "MB", lines

"""Measures the overhead of each observer on each workload, and that of sampled runs."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.observers import OBSERVERS, Observer, available, lens_every
from benchmarks.paired import Measured, measure
from benchmarks.workloads import SHORT, WORKLOADS, actor_critic, conv, gpt, mlp
from tensorlens.render.markdown_text import markdown_table

ROUNDS = {"tiny ops": 15, "MLP": 14, "mini-GPT": 12, "conv net": 20, "actor-critic": 12, "ODE solver": 10, "lists": 3}
HEAVY = {"detect_anomaly", "DebugMode", "LoggingTensorMode", "TorchSnooper"}  # measured on short workloads
HEAVY_ROUNDS = 3
EVERY = 100
SAMPLED_ROUNDS = 11
MANY: dict[str, tuple[Any, int]] = {  # a workload and its steps
    "MLP": (mlp, 2_000),
    "mini-GPT": (gpt, 100),
    "conv net": (conv, 100),
    "actor-critic": (actor_critic, 500),
}


def overhead(quick: bool) -> str:
    observers, missing = available()
    light = {name: observer for name, observer in observers.items() if name not in HEAVY}
    heavy = {name: observer for name, observer in observers.items() if name in HEAVY or name == "plain"}
    lines = [
        "## Overhead",
        "",
        "In each round, every observer runs the same workload three times in the same process. The first run is not",
        'part of "times plain": it is the median of the better times of the later two, each divided by the better',
        'plain time of the same round. "once" is what the first run takes longer, beyond what a plain one does: an',
        "observer meets each line, function and shape for the first time. The middle half is the range of the middle",
        "half of the ratios. The last column divides what the observer adds by what an empty `TorchFunctionMode` adds.",
        f"{_listed(sorted(HEAVY))} take up to some hundred times as long as a plain",
        f"run: they have {HEAVY_ROUNDS} rounds of a shorter workload, with plain runs of their own.",
        "",
    ]
    for name, make in WORKLOADS.items():
        found = measure(make, light, 2 if quick else ROUNDS[name])
        slow = measure(SHORT[name], heavy, 1 if quick else HEAVY_ROUNDS)
        found |= {observer: measured for observer, measured in slow.items() if observer != "plain"}
        lines += [
            f"### {name}",
            "",
            " ".join((make.__doc__ or name).split()),
            "",
            *markdown_table(
                ("observer", "times plain", "middle half", "once, ms", "adds / empty mode"),
                [_row(observer, found[observer], found["empty mode"]) for observer in observers],
            ),
            "",
        ]
    return "\n".join([*lines, *(f"- {name} was not measured: {why}" for name, why in missing.items())])


def sampling(quick: bool) -> str:
    """Measures runs that record one training step in `EVERY`."""
    observers: dict[str, Observer] = {"plain": OBSERVERS["plain"], "sampled": partial(lens_every, EVERY)}
    rows = []
    for name, (make, most) in MANY.items():
        steps = most // 5 if quick else most
        sampled = measure(partial(make, steps), observers, 1 if quick else SAMPLED_ROUNDS)["sampled"]
        low, high = sampled.spread
        rows.append((name, f"{steps:,}", f"{sampled.ratio:.3f}", f"{low:.3f} to {high:.3f}"))
    return "\n".join(
        (
            f"## One training step in {EVERY}",
            "",
            f"Runs of many steps under `--every {EVERY}`, which records the first step and every {EVERY}th.",
            "",
            *markdown_table(("workload", "steps", "times plain", "middle half"), rows),
        )
    )


def _row(observer: str, measured: Measured, empty: Measured) -> tuple[str, ...]:
    low, high = measured.spread
    over = (measured.ratio - 1) / (empty.ratio - 1) if empty.ratio > 1 and observer != "plain" else None
    times = "" if over is None else f"{over:.2f}"
    once = "" if observer == "plain" else f"{1000 * measured.seconds_once:.1f}"
    return observer, f"{measured.ratio:.2f}", f"{low:.2f} to {high:.2f}", once, times


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"

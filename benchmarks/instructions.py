"""Counts the instructions of a training step, plain and under the lens: `python -m benchmarks.instructions`.

Times on a busy machine differ by more than a change of the recorder saves; counts by `valgrind --tool=callgrind` differ
by a few in a thousand. Each workload runs twice in a process of its own, the second time with twice as many steps: the
difference is what these steps took. Names of workloads may follow; each takes some minutes. `--sampled` records one
step in `EVERY`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial

from tensorlens.render.markdown_text import markdown_table

STEPS = 20
SAMPLED_STEPS, EVERY = 200, 100
WARM = 10  # steps before those that are counted
SAMPLED = f"one step in {EVERY}"
NAMES = ("MLP", "actor-critic")
VALGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
ALONE = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def main(names: tuple[str, ...], is_sampled: bool) -> None:
    rows = []
    for name in names or NAMES:
        steps = SAMPLED_STEPS if is_sampled else STEPS
        plain, lens = (_per_step(name, observer, steps) for observer in ("plain", SAMPLED if is_sampled else "lens"))
        rows.append((name, f"{plain:,.0f}", f"{lens:,.0f}", f"{lens / plain:.3f}"))
        print(*rows[-1], file=sys.stderr)
    print(*markdown_table(("a step of", "plain", "lens", "ratio"), rows), sep="\n")


def _per_step(name: str, observer: str, steps: int) -> float:
    once, twice = (_count(name, observer, WARM + each) for each in (steps, 2 * steps))
    return (twice - once) / steps


def _count(name: str, observer: str, steps: int) -> int:
    command = (*VALGRIND, sys.executable, "-m", "benchmarks.instructions", "--run", name, observer, str(steps))
    done = subprocess.run(command, env={**os.environ, **ALONE}, capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])


def _run(name: str, observer: str, steps: int) -> None:
    import torch

    from benchmarks.observers import OBSERVERS, Observer, lens_every
    from benchmarks.workloads import actor_critic, conv, gpt, mlp, ode, tiny_ops
    from tensorlens.tracer.recording import journal_writer

    workloads: dict[str, Callable[[], Callable[[], object]]] = {
        "tiny ops": partial(tiny_ops, 100 * steps),
        "MLP": partial(mlp, steps),
        "mini-GPT": partial(gpt, steps),
        "conv net": partial(conv, steps),
        "actor-critic": partial(actor_critic, steps),
        "ODE solver": partial(ode, steps),
    }
    torch.manual_seed(0)
    journal_writer.INTERVAL = 3600.0  # valgrind stretches the time, and so would let the journal be written more often
    run = workloads[name]()
    observers: dict[str, Observer] = {**OBSERVERS, SAMPLED: partial(lens_every, EVERY)}
    with observers[observer]():
        run()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        _run(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        chosen = [each for each in sys.argv[1:] if each != "--sampled"]
        main(tuple(chosen), "--sampled" in sys.argv)

"""`make bench`: measures everything, prints it, writes docs/benchmarks.md. `--quick`: fewer rounds, shorter runs."""

from __future__ import annotations

import compileall
import os
import platform
import subprocess
import sys
from functools import partial
from pathlib import Path

import torch

import tensorlens
from benchmarks import long_record
from benchmarks.observers import OBSERVERS, Observer, available, lens_every
from benchmarks.paired import FEW, SLOW, Measured, measure
from benchmarks.scale import ROOT, cpu_times, long_run, sizes, start_up
from benchmarks.workloads import WORKLOADS, actor_critic, conv, gpt, mlp
from tensorlens.render.markdown_text import markdown_table
from tensorlens.tracer.recording import compiled

DOCUMENT = ROOT / "docs" / "benchmarks.md"
COMPILED = "not compiled" if compiled.FastPath is None else "compiled"
QUICK = "--quick" in sys.argv
ROUNDS = {"tiny ops": 30, "MLP": 10, "mini-GPT": 8, "conv net": 15, "actor-critic": 10, "ODE solver": 10, "lists": 5}
RUNS = 3 if QUICK else 20  # of each workload, when the time of both processes is measured
LONG = {"MLP": (mlp, 2_000), "mini-GPT": (gpt, 100), "conv net": (conv, 200), "actor-critic": (actor_critic, 1_000)}
OPS = 100_000 if QUICK else 1_000_000
STARTS = 3 if QUICK else 9
EXPLAIN = [sys.executable, "-m", "tensorlens", "explain"]
TENSORLENS = [sys.executable, "-m", "tensorlens"]

CALL = """## What a call costs

Measured once, apart from the tables above, for the eight operations of "tiny ops" (torch 2.13, Python 3.11), in
nanoseconds of the program's thread for each operation, beyond those of a plain run:

| what runs for each operation | ns |
|---|---|
| an empty `TorchFunctionMode` in Python | 2020 |
| a mode whose method is C and only makes the call | 1480 |
| the same, and one fact read by its Python name: `_version` | 1610 |
| ... `shape` | 1690 |
| ... a sequence number | 1640 |
| ... and a weak reference to the result | 1610 |

So PyTorch's own way to any mode is most of the cost, and a fact that is asked for through Python costs 130 to 210 ns.
Counted by `valgrind --tool=callgrind`, the compiled path took 8,800 instructions around an operation when it read ten
such facts and kept ids in Python's dicts and lists. It takes 1,560 now: C++ is asked for the facts (sizes, versions,
addresses and sequence numbers cost 10 to 80 instructions each), tensors are found in a table in C, and rows are packed
as 64-bit ints. The arguments with their versions take 200 of these, the call template 180, the weak reference to the
result 170, its entries in the tables 165, its sizes and address 140, the kind of the function 150. Another 1,400 were
PyTorch's look-up of `__torch_function__` on the mode, in every base class: the compiled path is on the stack of modes
itself now and answers in 50. The whole loop, with the thread that writes the journal, takes 9 % more instructions than
under the mode whose method is C and only makes the call; it took 67 % more.

The rest of what the lens adds to a training step is outside single operations: one row for each gradient and parameter
in a backward pass and a step, functions in Python that PyTorch itself runs again for a mode (`relu`, `cross_entropy`,
`backward`), and the patches around `zero_grad`, `step` and the engine.
"""


def main() -> None:
    torch.set_num_threads(2)
    compileall.compile_dir(ROOT / "tensorlens", quiet=2)  # as pip does; a checkout may have no bytecode
    sections = [
        _head(),
        *_overhead(),
        CALL,
        *_sampling(),
        *_processor_time(),
        *_scale(),
        *_long(),
        *_starts(),
        *_score(),
    ]
    text = "\n".join(sections) + "\n"
    print(text)
    DOCUMENT.write_text(text)


def _head() -> str:
    processor = next(
        (line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    return f"""# What the lens costs

Written by `make bench` on {os.cpu_count()} cores of {processor or "an unnamed processor"}, {platform.system()}, Python
{platform.python_version()}, torch {torch.__version__}, tensorlens {tensorlens.__version__}. In each round, every
observer runs the same workload twice in the same process, and its better time is divided by the better time of two
plain runs. "Times plain" is the median of these ratios over the rounds, "middle half" the range of the middle half of
them. The last column divides the time that the observer adds by the time that an empty `TorchFunctionMode` adds. An
observer that takes more than {SLOW:.0f} times as long as a plain run has only {FEW} rounds. The recorder's fast path
was {COMPILED}.
"""


def _overhead() -> list[str]:
    observers, missing = available()
    lines = ["## Overhead", ""]
    for name, make in WORKLOADS.items():
        what = " ".join((make.__doc__ or name).split())
        rounds = max(3, ROUNDS[name] // (4 if QUICK else 1))
        found = measure(make, observers, rounds)
        empty = found["empty mode"].added
        lines += [
            f"### {name}",
            "",
            what,
            "",
            *markdown_table(
                ("observer", "times plain", "middle half", "adds / empty mode"),
                [_row(observer, measured, empty) for observer, measured in found.items()],
            ),
            "",
        ]
    lines += [f"- {name} was not measured: {why}" for name, why in missing.items()]
    return [*lines, ""]


def _sampling() -> list[str]:
    """Measures runs that record one training step in N."""
    sampled: dict[str, Observer] = {f"every {number}": partial(lens_every, number) for number in (100, 10)}
    observers = {"plain": OBSERVERS["plain"], **sampled}
    rows = []
    for name, (make, steps) in LONG.items():
        found = measure(partial(make, steps // (4 if QUICK else 1)), observers, 3)
        for observer in list(observers)[1:]:
            low, high = found[observer].spread
            rows.append((name, f"{steps:,}", observer, f"{found[observer].ratio:.3f}", f"{low:.3f} to {high:.3f}"))
    return [
        "## One training step in N",
        "",
        "Runs of many steps under `--every N`, which records the first step and every N-th.",
        "",
        *markdown_table(("workload", "steps", "option", "times plain", "middle half"), rows),
        "",
    ]


def _row(observer: str, measured: Measured, empty: list[float]) -> tuple[str, ...]:
    low, high = measured.spread
    over = sorted(added / base for added, base in zip(measured.added, empty, strict=False) if base > 0)
    times = f"{over[len(over) // 2]:.2f}" if over and observer != "plain" else ""
    return observer, f"{measured.ratio:.2f}", f"{low:.2f} to {high:.2f}", times


def _processor_time() -> list[str]:
    rows: list[tuple[str, ...]] = []
    for name in WORKLOADS:
        plain, lens = cpu_times(name, RUNS, [sys.executable]), cpu_times(name, RUNS, EXPLAIN)
        seconds = (f"{time:.2f}" for time in (plain.program, lens.program, lens.own))
        both = (lens.program + lens.own) / plain.program
        rows.append((name, *seconds, f"{100 * lens.own / lens.program:.0f} %", f"{both:.2f}"))
    heads = ("", "plain, s", "program, s", "command, s", "command / program", "both / plain")
    return [
        "## Processor time of both processes",
        "",
        f"Each workload {RUNS} times in a process of its own, with the start of Python and the import of torch: plain,",
        "and under `tensorlens explain`, in the program's process and in the command's own, which reads the journal",
        "and prints the report. If the program keeps all cores busy, the last column is the ratio of wall times too.",
        "",
        *markdown_table(heads, rows),
        "",
    ]


def _scale() -> list[str]:
    plain, lens = long_run(OPS, [sys.executable]), long_run(OPS, EXPLAIN)
    failing = long_run(100_000, EXPLAIN, fails=True)
    report, trace = sizes(OPS)
    halves = [f"{run.resident[4]:.0f}, {run.resident[-1]:.0f}" for run in (plain, lens)]
    per_op = 1e6 / (OPS / 10)
    rows = {
        "us an op, first tenth": (per_op * plain.tenths[0], per_op * lens.tenths[0]),
        "us an op, last tenth": (per_op * plain.tenths[-1], per_op * lens.tenths[-1]),
        "last tenth over first": (plain.tenths[-1] / plain.tenths[0], lens.tenths[-1] / lens.tenths[0]),
        "peak memory of the program's process, MB": (plain.peak, lens.peak),
        "peak memory of the command's own process, MB": (0.0, lens.reader_peak),
        "seconds from the program's last line to the end of the command": (plain.report_after, lens.report_after),
        "the report as JSON, MB": (0.0, report / 1e6),
        "the saved trace, MB": (0.0, trace / 1e6),
    }
    table: list[tuple[str, ...]] = [(what, f"{without:.2f}", f"{under:.2f}") for what, (without, under) in rows.items()]
    table.append(("memory of the program's process after half of it, and at its end, MB", *halves))
    failed = f"{failing.report_after:.2f} s after the last line before the failure."
    return [
        f"## A loop of {OPS:,} ops on 100 lines",
        "",
        *markdown_table(("", "plain", "lens"), table),
        "",
        f"A script that fails after 100,000 ops: its diagnosis is printed {failed}",
        "",
    ]


def _long() -> list[str]:
    """Returns the section of `long_record`; a quick run measures nothing new for it."""
    if not QUICK:
        return [long_record.section(long_record.longest(long_record.CALLS))]
    return [long_record.section(long_record.read())] if long_record.RECORD.exists() else []


def _starts() -> list[str]:
    imports = [sys.executable, "-c", "import typer, rich"]
    imports_of_help = [sys.executable, "-c", "import typer.rich_utils"]  # draws typer's help pages
    pairs = {
        "`tensorlens --help` / `import typer.rich_utils`": ([*TENSORLENS, "--help"], imports_of_help),
        "`tensorlens list` / `import typer, rich`": ([*TENSORLENS, "list"], imports),
        "`tensorlens errors CODE` / `import typer, rich`": (
            [*TENSORLENS, "errors", "saved-tensor-modified-inplace"],
            imports,
        ),
        "`tensorlens run detach` / `python scenarios/detach.py`": (
            [*TENSORLENS, "run", "detach"],
            [sys.executable, "scenarios/detach.py"],
        ),
    }
    found = start_up(pairs, STARTS)
    rows = [(name, f"{ratio:.2f}") for name, ratio in found.items()]
    return ["## Start-up", "", "Whole processes, one after the other.", "", *markdown_table(("", "ratio"), rows), ""]


def _score() -> list[str]:
    """Returns the scores of the catalogue and of the marked programs: how much is explained at this cost."""
    return [
        "## What it explains at this cost",
        "",
        "The score of the catalogue (docs/catalogue.md).",
        "",
        _printed_by("tools.catalogue_page"),
        "",
        "The programs with marked causes (docs/advice.md).",
        "",
        _printed_by("tools.advice_page", "--group", "cases", "--totals"),
    ]


def _printed_by(module: str, *options: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    run = [sys.executable, "-m", module, *options]
    return subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    main()

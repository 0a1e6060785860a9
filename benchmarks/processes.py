"""Measures runs of whole processes: their processor time, memory, start-up, the report and the saved trace."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.big_programs import PROGRAMS
from benchmarks.scale import busy_wall, cpu_times, long_run, program_times, sizes, start_up, wide_sizes
from tensorlens.render.markdown_text import markdown_table

# How often a process runs each workload: some seconds.
TIMES = {"tiny ops": 40, "MLP": 40, "mini-GPT": 8, "conv net": 20, "actor-critic": 12, "ODE solver": 60, "lists": 4}
LONGER = 4  # times as much: the difference is without what a start and a report take
TRAINING_ROUNDS = 3
TRAINED = ("MLP", "mini-GPT", "conv net", "actor-critic")
OPS = 1_000_000
FAILING_OPS = 100_000
WIDE_CALLS = 200_000
STARTS = 5
PLAIN = [sys.executable]
TENSORLENS = [sys.executable, "-m", "tensorlens"]
EXPLAIN = [*TENSORLENS, "explain"]


def processor_time(quick: bool) -> str:
    rows: list[tuple[str, ...]] = []
    for name, most in TIMES.items():
        times = max(1, most // 10) if quick else most
        plain, lens = cpu_times(name, times, PLAIN), cpu_times(name, times, EXPLAIN)
        longer = cpu_times(name, LONGER * times, EXPLAIN)
        further = (longer.own - lens.own) / (longer.program - lens.program)
        both = (lens.program + lens.own) / plain.program
        wall = busy_wall(name, times, EXPLAIN) / busy_wall(name, times, PLAIN)
        seconds = (f"{time:.2f}" for time in (plain.program, lens.program, lens.own))
        shares = (f"{100 * share:.0f} %" for share in (lens.own / lens.program, further))
        rows.append((name, *seconds, *shares, f"{both:.2f}", f"{wall:.2f}"))
    of_program = ("command / program", "in the long run")
    heads = ("", "plain, s", "program, s", "command, s", *of_program, "both / plain", "all cores busy")
    return "\n".join(
        (
            "## Processor time of both processes",
            "",
            "Each workload in a process of its own, some times over, with the start of Python and the import of torch:",
            "plain, and under `tensorlens explain`, in the program's process and in the command's own, which reads the",
            "journal and prints the report. Its start and the report take most of its time in a run of seconds: the",
            f'column "in the long run" is for the further time of a program that runs {LONGER} times as long. The last',
            f"column is a ratio of wall times while all cores are busy: of {os.cpu_count()} programs at once under the",
            "lens, and as many plain ones.",
            "",
            *markdown_table(heads, rows),
        )
    )


def training(quick: bool) -> str:
    """Measures `--training` against a run without it, in rounds: the medians of the seconds and of the ratios."""
    rows: list[tuple[str, ...]] = []
    for name in TRAINED:
        times = max(1, TIMES[name] // 10) if quick else TIMES[name]
        rounds = []
        for _ in range(1 if quick else TRAINING_ROUNDS):
            with one_thread():
                plain, without, under = (
                    cpu_times(name, times, command) for command in (PLAIN, EXPLAIN, [*EXPLAIN, "--training"])
                )
            ratios = under.program / without.program, under.program / plain.program
            both = (under.program + under.own) / plain.program
            rounds.append((plain.program, without.program, under.program, under.own, *ratios, both))
        rows.append((name, *(f"{median(values):.2f}" for values in zip(*rounds, strict=True))))
    heads = ("", "plain, s", "`explain`, s", "`--training`, s", "its command, s", "`--training` / `explain`",
             "program / plain", "both / plain")  # fmt: skip
    return "\n".join(
        (
            "## A run with `--training`",
            "",
            "Processor time of whole processes: of the program plain, under `explain` and under `explain --training`,",
            "and of the command's own process under `--training`. PyTorch has one thread here: a second one waits",
            "actively for the first, and its time would count twice what the first adds.",
            f"Medians of {TRAINING_ROUNDS} rounds, in which the three run one after the other; the ratios are those of",
            "one round.",
            "",
            *markdown_table(heads, rows),
        )
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Starts processes in which PyTorch has one thread, inside a `with` block."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        del os.environ["OMP_NUM_THREADS"]
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before


def scale(quick: bool) -> str:
    ops = OPS // 10 if quick else OPS
    plain, lens = long_run(ops, PLAIN), long_run(ops, EXPLAIN)
    failing = long_run(FAILING_OPS, EXPLAIN, fails=True)
    calls = WIDE_CALLS // 10 if quick else WIDE_CALLS
    found, wide = sizes(ops), wide_sizes(calls)
    halves = [f"{run.resident[4]:.0f}, {run.resident[-1]:.0f}" for run in (plain, lens)]
    per_op = 1e6 / (ops / 10)
    rows = {
        "us an op, first tenth": (per_op * plain.tenths[0], per_op * lens.tenths[0]),
        "us an op, last tenth": (per_op * plain.tenths[-1], per_op * lens.tenths[-1]),
        "last tenth over first": (plain.tenths[-1] / plain.tenths[0], lens.tenths[-1] / lens.tenths[0]),
        "peak memory of the program's process, MB": (plain.peak, lens.peak),
        "peak memory of the command's own process, MB": (0.0, lens.reader_peak),
        "seconds from the program's last line to the end of the command": (plain.report_after, lens.report_after),
        "the report as JSON, MB": (0.0, found.report / 1e6),
        "the saved trace, MB": (0.0, found.trace / 1e6),
        "seconds that `view` takes for that trace": (0.0, found.view),
    }
    table: list[tuple[str, ...]] = [(what, f"{without:.2f}", f"{under:.2f}") for what, (without, under) in rows.items()]
    table.append(("memory of the program's process after half of it, and at its end, MB", *halves))
    return "\n".join(
        (
            "## A long loop on 100 lines",
            "",
            f"A loop of {ops:,} ops.",
            "",
            *markdown_table(("", "plain", "lens"), table),
            "",
            f"A script that fails after {FAILING_OPS:,} ops: its diagnosis is printed {failing.report_after:.2f} s",
            f"after the last line before the failure. The saved trace of {calls:,} calls on {min(calls, 100_000):,}",
            f"lines has {wide.trace / 1e6:.0f} MB, and `view` takes {wide.view:.1f} s for it.",
        )
    )


def big(quick: bool) -> str:
    """Measures programs that are deep or wide, at a quarter of their size and at the whole."""
    script = str(Path(__file__).with_name("big_programs.py"))
    rows: list[tuple[str, ...]] = []
    for program, most in PROGRAMS.items():
        added: list[float] = []
        for size in (most // 4, most // 10 if quick else most):
            arguments = [script, program.__name__, str(size)]
            plain, lens = program_times([*PLAIN, *arguments]), program_times([*EXPLAIN, *arguments])
            added.append(lens.program + lens.own - plain.program)
        what = (program.__doc__ or "").rstrip(".").replace("SIZE", f"{most:,}")
        seconds = (f"{time:.2f}" for time in (plain.program, lens.program, lens.own))
        rows.append((what, *seconds, f"{added[0]:.2f}", f"{added[1]:.2f}"))
    heads = ("", "plain, s", "program, s", "command, s", "adds, at a quarter of the size", "adds")
    return "\n".join(
        (
            "## Deep and wide programs",
            "",
            "Processor time as above, and what the lens adds to it in both processes together, also at a quarter of",
            "the size: with four times the size, it adds about four times as much, less what a start costs.",
            "",
            *markdown_table(heads, rows),
        )
    )


def starts(quick: bool) -> str:
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
    pytest_starts = [sys.executable, "-m", "pytest", "-c", os.devnull, "--markers"]
    pairs["`pytest` with the plugin installed and unused / without it"] = (
        pytest_starts,
        [*pytest_starts, "-p", "no:tensorlens"],
    )
    shell_starts = "from IPython.core.interactiveshell import InteractiveShell; InteractiveShell.instance()"
    others = "[path for path in sys.path if path and not os.path.exists(path + '/tensorlens/__init__.py')]"
    pairs["an IPython shell with the package installed and unused / without it"] = (
        [sys.executable, "-c", shell_starts],
        [sys.executable, "-c", f"import os, sys; sys.path[:] = {others}; {shell_starts}"],
    )
    found = start_up(pairs, 2 if quick else STARTS)
    rows = [(name, f"{ratio:.2f}") for name, ratio in found.items()]
    return "\n".join(
        ("## Start-up", "", "Whole processes, one after the other.", "", *markdown_table(("", "ratio"), rows))
    )

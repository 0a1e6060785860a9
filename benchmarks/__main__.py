"""`make bench` measures what the lens costs, in about twenty minutes, and writes docs/benchmarks.md.

The page keeps the sections that are not measured.
"""

from __future__ import annotations

import argparse
import compileall
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import tensorlens
from benchmarks import long_record, overhead, page_sizes, processes, ranks
from benchmarks.long_plots import draw
from benchmarks.page import with_sections
from benchmarks.scale import ROOT
from tensorlens.tracer.recording import compiled

DOCUMENT = ROOT / "docs" / "benchmarks.md"
CATALOGUE = ROOT / "docs" / "catalogue.md"


def main() -> None:
    options = _options()
    torch.set_num_threads(2)
    compileall.compile_dir(ROOT / "tensorlens", quiet=2)  # as pip does; a checkout may have no bytecode
    chosen = options.only or [name for name in PARTS if name not in OPTIONAL]
    chosen += [name for name in OPTIONAL if getattr(options, name, False) and name not in chosen]
    sections = []
    for name in chosen:
        start = time.perf_counter()
        section = long_run(options.long) if name == "long" else PARTS[name](options.quick)
        if name in PRINTED:
            print(section)
        else:
            sections.append(section)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    if not sections:
        return
    page = with_sections(DOCUMENT.read_text(), sections, None if options.only else head())
    print(page)
    output = options.output or (None if options.quick else DOCUMENT)
    if output is not None:
        output.write_text(page)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs: print the page, write nothing")
    parser.add_argument(
        "--long", type=int, nargs="?", const=long_record.CALLS, default=0, metavar="CALLS",
        help=f"also make the long, wide run, of {long_record.CALLS:,} calls if not said",
    )  # fmt: skip
    parser.add_argument("--only", nargs="+", choices=[*PARTS], metavar="PART", help=f"only these: {', '.join(PARTS)}")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the page to another file")
    options = parser.parse_args()
    if "long" in (options.only or ()):
        options.long = options.long or long_record.CALLS
    return options


def head() -> str:
    processor = next(
        (line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    how = "not compiled" if compiled.FastPath is None else "compiled"
    return f"""# What the lens costs

Written by `make bench` on {os.cpu_count()} cores of {processor or "an unnamed processor"}, {platform.system()}, Python
{platform.python_version()}, torch {torch.__version__}, tensorlens {tensorlens.__version__}. The recorder's fast path
was {how}.
"""


def score(quick: bool) -> str:
    """Returns the scores of the catalogue: how much is explained at this cost."""
    table = CATALOGUE.read_text().split("\n\n")[2]
    return f"## What it explains at this cost\n\nThe score of the catalogue, of its page (catalogue.md).\n\n{table}"


def cases(quick: bool) -> str:
    """Judges the first help for each program with marked causes."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    run = [sys.executable, "-m", "tools.advice_page", "--group", "cases", "--totals"]
    table = subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    return f"## The programs with marked causes\n\nTheir score, as on its page (advice.md).\n\n{table}"


def long_run(calls: int) -> str:
    samples = long_record.record(calls)
    draw(samples, long_record.RECORD.parent)
    return long_record.section(samples)


PARTS: dict[str, Callable[[bool], str]] = {
    "overhead": overhead.overhead,
    "sampling": overhead.sampling,
    "processes": processes.processor_time,
    "training": processes.training,
    "scale": processes.scale,
    "big": processes.big,
    "starts": processes.starts,
    "page": page_sizes.page_sizes,
    "ranks": ranks.ranks,
    "score": score,
    "cases": cases,
    "long": lambda quick: "",
}
OPTIONAL = ("long", "ranks")
PRINTED = ("ranks",)  # what is copied by hand: docs/ranks.md


if __name__ == "__main__":
    main()

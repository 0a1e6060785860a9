"""`make trust`: runs every program of `programs/unchanged` plainly and under the lens, and writes docs/trust.md."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from test_unchanged import GAPS, SCRIPTS, comparable
from warm import Warm

PAGE = Path(__file__).parent.parent / "docs" / "trust.md"
HEAD = """# What was tried, to see that the lens changes nothing

Written by `make trust`, which runs each program plainly and under the lens and compares standard output, standard
error and exit status. `make unchanged` does the same with every operation of PyTorch's `op_db` and all its sample
inputs in float64, float32, complex128 and int64, forward and backward: values bit by bit, strides, versions, storage
sharing, gradients, warnings, exceptions and the state of the random generator. It prints how many there were.

| Group | Programs | Unchanged | Which |
| --- | --- | --- | --- |
"""
LIMITS = """
## Known limits

| What | What the report says of it |
| --- | --- |
"""
UNSAID = """
What a program can see of the lens all the same: the function mode on torch's stack
(`torch.overrides._get_current_function_mode()`), one more entry in `warnings.filters`, the functions that stand in for
the patched ones (they have the names and signatures of the originals), and the time that recording takes.
"""


def main() -> None:
    groups: dict[str, list[str]] = defaultdict(list)
    unchanged: dict[str, int] = defaultdict(int)
    with Warm() as warm:
        for script in SCRIPTS:
            group = script.parent.name
            same = comparable(warm.plain(script)) == comparable(warm.traced(script)[0])
            groups[group].append(script.stem.replace("_", " ") + ("" if same else " (differs)"))
            unchanged[group] += same
    rows = [f"| {g} | {len(names)} | {unchanged[g]} | {', '.join(names)} |" for g, names in groups.items()]
    total = f"| all | {sum(map(len, groups.values()))} | {sum(unchanged.values())} | |"
    limits = [f"| {name.replace('_', ' ')} | {gap} |" for name, gap in GAPS.items()]
    PAGE.write_text(HEAD + "\n".join([*rows, total]) + "\n" + LIMITS + "\n".join(limits) + "\n" + UNSAID, "utf-8")


if __name__ == "__main__":
    main()

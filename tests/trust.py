"""`make trust`: runs every program of `programs/unchanged` plainly and under the lens, and writes docs/trust.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from forged_trace import EDITS
from fuzzing import EVERYDAY, HOLDS, THOROUGH
from test_forged import JOURNALS
from test_net import CLAIMS, INNER, REFERENCE
from test_survival import GIGABYTES
from test_unchanged import GAPS, SCRIPTS, comparable
from unchanged import counts
from unchanged.groups import FEW, GROUPS, SOME
from warm import Warm

from tensorlens.journal import BROKEN, LOST

PAGE = Path(__file__).parent.parent / "docs" / "trust.md"
HEAD = """# What was tried, to see that the lens changes nothing

## Programs

Written by `make trust`, which runs each program plainly and under the lens and compares standard output, standard
error and exit status.

| Group | Programs | Unchanged | Which |
| --- | --- | --- | --- |
"""
SAMPLES = f"""
## PyTorch's own tests, as far as its wheel carries them

What `make unchanged` got through: where not all was tried, it was stopped before its end. It runs what PyTorch's own
tests are made of, plainly and under the lens, and compares values bit by bit, strides, versions, storage sharing,
gradients, warnings, exceptions with their text, and the state of the random generator. Operations go forward and
backward in float64, float32, complex128 and int64: as functions on all sample inputs, in every other way that they can
be called on {SOME} of them in each dtype. Modules go forward, backward, and backward through the backward, in training
and evaluation; optimizers in each implementation (loop, foreach, fused, differentiable) through steps and a round trip
of their state. Of the cases of `test_nn.py` and the checks (float64, {FEW} samples of each operation) the end is
compared: passed, or the same error with the same text. "Undetermined" are those that plain runs already give different
values for (`torch.empty`): all but the values is compared.

| What | How many | Samples | Undetermined | Differences |
| --- | --- | --- | --- | --- |
"""
ELSEWHERE = """
## The tests of other projects

Each test was run plainly and inside `tensorlens.trace()`, by `python -m pytest -p under_lens --lens --outcomes FILE`
(`tests/support/under_lens.py`), and the outcomes were compared test by test.

| Project | Tests | Outcomes that differ |
| --- | --- | --- |
"""
SUITES = (
    ("einops 0.8.2 (`torch.compile` left out)", 63, 0),
    ("entmax 1.0 (less `test_losses.py`)", 66, 0),
    ("linear_operator 0.6.1 (functions, utilities, four operators)", 948, 0),
    ("gpytorch 1.15.2 (two kernels, means, optimizers)", 146, 0),
)
"""Done once, by hand: other projects' sources are not fetched by a test."""
FUZZED = """
## Made by hypothesis

| What | Every day | `make fuzz` | What must hold |
| --- | --- | --- | --- |
"""
EXTREMES = """
## Made to go wrong

| What | How many | What must hold |
| --- | --- | --- |
"""
LIMITS = """
## Known limits

| What | What the report says of it |
| --- | --- |
"""
ENDINGS = {
    "a program that closes all descriptors, or becomes another": LOST,
    "one that writes into the journal": BROKEN,
}
UNSAID = """
What a program can see of the lens all the same: the function mode on torch's stack
(`torch.overrides._get_current_function_mode()`), one more entry in `warnings.filters`, the functions that stand in for
the patched ones (they have the names and signatures of the originals), that what `import torch` made is out of the
garbage collector's sight (`gc.get_freeze_count()`; collections come at other moments), a deeper stack (by some ten
frames for each backward pass that runs inside another), and the time that recording takes.
A process that is killed loses what it recorded in its last second, at the most. Where the command is killed at the same
moment as the program, with the live line on screen, the terminal scrolls all but its last row until `reset`.
A crash of torch's own may not happen: `v = (x * 2).view(3); v[0] += 1; v.register_hook(f)` is a segmentation fault
in torch 2.13 unless `v.grad_fn` is read before the hook is registered, as the lens does.
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
    suites = [f"| {name} | {tests:,} | {differ} |" for name, tests, differ in SUITES]
    limits = [f"| {name.replace('_', ' ')} | {gap} |" for name, gap in (GAPS | ENDINGS).items()]
    fuzzed = [f"| {kind} | {EVERYDAY[kind]} | {THOROUGH[kind]:,} | {held} |" for kind, held in HOLDS.items()]
    samples = list(_compared())
    extremes = [f"| {what} | {count:,} | {held} |" for what, count, held in _made_to_go_wrong()]
    tables = [(HEAD, [*rows, total]), (SAMPLES, samples), (ELSEWHERE, suites), (FUZZED, fuzzed)]
    tables += [(EXTREMES, extremes), (LIMITS, limits)]
    PAGE.write_text("".join(head + "\n".join(rows) + "\n" for head, rows in tables) + UNSAID, "utf-8")


def _made_to_go_wrong() -> Iterator[tuple[str, int, str]]:
    """What tests do to the lens: (what, how many, what they hold it to)."""
    told = "the program's output, exceptions and exit status are the plain run's, and the report has a gap"
    yield "functions of the lens that fail whenever they are called", len(INNER + REFERENCE + CLAIMS), told
    told = "where rows make no sense together the report says that the journal was damaged; 1.5 GB are enough"
    yield "journals with wrong numbers, in circles, ahead, in another order", JOURNALS, told
    told = "refused in one line, or shown in every form; 1.5 GB are enough"
    yield "trace files with gigantic numbers, ids in circles, chains and lines without end", len(EDITS), told
    told = "the same bytes, and no more memory in either process than a short run takes"
    yield "gigabytes that a program prints", GIGABYTES, told


def _compared() -> Iterator[str]:
    """A row for each database: how much of it the last run of `make unchanged` got through."""
    done = counts.kept(counts.KEPT.read_text("utf-8")) if counts.KEPT.exists() else {}
    for group in GROUPS:
        tried, samples, random, wrong = done.get(group.name, (0, 0, 0, 0))
        yield f"| {group.name} | {tried} of {len(group.database())} | {samples:,} | {random:,} | {wrong:,} |"


if __name__ == "__main__":
    main()

"""`make trust`: runs the programs of `programs/unchanged` and `programs/endings`, and odd sources, with and without
TensorLens, and writes docs/trust.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzzing import EVERYDAY, HOLDS, THOROUGH
from support.device_programs import PROGRAMS
from support.endings import CALLS, ENDINGS, Outcome, gaps, read, reported_ending, try_out
from support.folders import DOCS
from support.forged_trace import EDITS
from support.odd_sources import SOURCES
from support.warm import Warm, comparable
from test_forged_files import JOURNALS
from test_guard import CLAIMS, INNER, REFERENCE
from test_starting import HOSTILE
from test_survival import GIGABYTES
from test_unchanged import SCRIPTS
from unchanged import counts
from unchanged.checks import MOST_TENSORS
from unchanged.groups import FEW, GROUPS, SOME

from tensorlens.journal.rows import BROKEN
from tensorlens.records.model import Trace

PAGE = DOCS / "trust.md"
HEAD = """# What was tried, to see that the lens changes nothing

## Programs

Written by `make trust`, which runs each program plainly and under the lens and compares standard output, standard
error and exit status.

| Group | Programs | Unchanged | Which |
| --- | --- | --- | --- |
"""
WRONG = f"""
## Programs that go wrong

Each calls torch {CALLS} times, then goes wrong or is stopped (`tests/programs/endings`). "Unchanged" counts those whose
output, error output and exit status under `tensorlens explain` are the same as under `python`. A program that crashes
before its end waits for a second after its last call.

| Group | Programs | Unchanged | Calls in the report |
| --- | --- | --- | --- |
"""
REPORTED_ENDINGS = """
How the reports describe the endings:

| The script | Programs | Which |
| --- | --- | --- |
"""
ODD = """
## Odd sources

| What the report says: the script | Sources | Unchanged | Which |
| --- | --- | --- | --- |
"""
SAMPLES = f"""
## PyTorch's own tests, as far as its wheel carries them

The table says how much of PyTorch's test inputs `make unchanged` has tried; a run that was stopped did not try all. It
runs each input plainly and under the lens, and compares values bit by bit, strides, versions, storage sharing,
gradients, warnings, exceptions with their text, and the state of the random generator.

- Operations run forward and backward in float64, float32, complex128 and int64: as functions on all sample inputs, in
  each other way of calling them on {SOME} samples per dtype.
- Modules run forward, backward, and backward through the backward, in training and evaluation mode.
- Optimizers run in each implementation (loop, foreach, fused, differentiable): some steps, and a round trip of their
  state.
- For the cases of `test_nn.py` and for the checks, only the ending is compared: passed, or the same error with the same
  text. The checks take float64 and {FEW} samples of each operation, of at most {MOST_TENSORS} tensors.

"Undetermined" counts the samples for which plain runs already give different values (`torch.empty`): everything but the
values is compared.

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
"""The results of runs by hand: a test does not fetch the sources of other projects."""
REAL = """
## Programs and libraries of others

Each was shortened to seconds, given synthetic data and a fixed random seed, and run plainly and under
`tensorlens explain`. "The same" counts the programs whose two runs had the same exit status, the same output (except
times, addresses and process numbers) and, bit for bit, the same optimizer parameters and random states at exit. The
lens gave one wrong warning, and gives it no longer.

| Group | Programs | The same | Which |
| --- | --- | --- | --- |
"""
EXAMPLES = (
    "fx invert, profiling and rewriter, GCN, GAT, hogwild (differs: two processes race, in plain runs too), MNIST RNN, "
    "regression, super resolution, per-sample gradients and Jacobians"
)
REPOSITORIES = (
    "attention-is-all-you-need, jcjohnson's examples, makemore, Muon, nlp-tutorial, normalizing flows, pygcn, "
    "minimalRL (ACER, DQN, PPO with LSTM, SAC), SAM, SIREN, yunjey's tutorial"
)
LIBRARIES = (
    "catalyst, denoising-diffusion, deepxde, entmax, fvcore, geoopt, ignite, kornia, neuraloperator, nflows, "
    "normflows, pytorch-metric-learning, pytorch-optimizer, segmentation-models, spandrel, torch-ema, torchcde, "
    "torchjd, torchmetrics, torchsde, x-transformers, zuko"
)
OTHERS = (
    ("pytorch/examples and tutorials", 11, 10, EXAMPLES),
    ("small repositories", 28, 28, REPOSITORIES),
    ("libraries", 22, 22, LIBRARIES),
)
"""The results of runs by hand, too."""
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
DEVICES = """
## Devices

**No GPU has run TensorLens yet.** The tests that need one are skipped where there is none, and the list of skipped
tests says so (`tests/tracer/test_devices.py`). They run programs under `torch.cuda.set_sync_debug_mode("error")`,
compare `torch.cuda.memory_allocated()`, and make a kernel fail. What was tried instead of a GPU:

| Where the tensors are | Programs | What must hold |
| --- | --- | --- |
"""
ON_DEVICES = (
    (
        "on `meta`, where nothing can be read",
        "the same kernels run as in a plain run, and after each kernel the same memory is alive",
    ),
    (
        "on a device made for the test, which raises if it is read",
        "the device is asked for the same as in a plain run, also after it has failed",
    ),
)
LIMITS = """
So a recording does not read a tensor on a device, does not copy it and does not wait for the device. It shows the shape
of such a tensor, and `not read`. What a finding needs values for is not found there: a derivative that is infinite, a
checkpoint that computes other values, a write through `.data` to what autograd has saved. There are two exceptions.
With `--reference` and with `--try` further runs compare gradients. And if anomaly mode finds a NaN, which made the
program wait already, the report counts the zeros and NaN of what that node had saved.

The lens does not ask which devices there are, because PyTorch would start CUDA to answer.

## Known limits

The reports of the programs above list these gaps:

| Gap | Programs | Which |
| --- | --- | --- |
"""
DAMAGED = (BROKEN, "one that writes into its journal (`tests/runner/test_survival.py`)")
NOT_REPORTED = """
The reports do not list what follows as gaps. A program can still notice TensorLens:

- The stack of function modes has one more mode (`torch.overrides._get_current_function_mode()`).
- `warnings.filters` has one more entry.
- The patched functions are other objects, with the names and signatures of the originals.
- The garbage collector ignores the objects that `import torch` made (`gc.get_freeze_count()`), and it runs at other
  moments.
- The stack is deeper, by some ten frames for each backward pass that runs inside another. While such a pass runs,
  `sys.getrecursionlimit()` is higher by as much; at other times, a few calls fewer fit into the recursion limit.
  `faulthandler` shows these frames, and the thread that writes the journal.
- `Tensor.dim_order(ambiguity_check=...)`: under any function mode, PyTorch drops the argument and takes it for False.
- Recording takes time.

The lens does not record what runs inside `torch._C.DisableTorchFunction()`, or in C++ that calls no Python.

A process that is killed loses at most what it recorded in its last second. Its report says that it covers what was
recorded until then.

If the command is killed at the same moment as the program while the progress line is on screen, the terminal scrolls
all rows but its last one, until `reset`.
"""


Table = tuple[str, list[str]]


class Named:
    """Collects names in groups, and counts those of each group that are unchanged."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = defaultdict(list)
        self._unchanged: dict[str, int] = defaultdict(int)

    def add(self, group: str, name: str, same: bool = True) -> None:
        self._names[group].append(name.replace("_", " ") + ("" if same else " (differs)"))
        self._unchanged[group] += same

    def rows(self, unchanged: bool = True) -> Iterator[str]:
        for group, names in self._names.items():
            same = f" {self._unchanged[group]} |" if unchanged else ""
            yield f"| {group} | {len(names)} |{same} {', '.join(names)} |"

    def total(self) -> str:
        return f"| all | {sum(map(len, self._names.values()))} | {sum(self._unchanged.values())} | |"


def main() -> None:
    limits = Named()
    with Warm() as warm:
        tables = [(HEAD, _unchanged(warm, limits))]
        odd = (ODD, _odd(warm))
    tables += [*_gone_wrong(limits), odd, (SAMPLES, list(_compared()))]
    limits.add(*DAMAGED)
    suites = [f"| {name} | {tests:,} | {differ} |" for name, tests, differ in SUITES]
    others = [f"| {name} | {programs} | {same} | {which} |" for name, programs, same, which in OTHERS]
    fuzzed = [f"| {kind} | {EVERYDAY[kind]} | {THOROUGH[kind]:,} | {held} |" for kind, held in HOLDS.items()]
    extremes = [f"| {what} | {count:,} | {held} |" for what, count, held in _made_to_go_wrong()]
    tables += [
        (REAL, others),
        (ELSEWHERE, suites),
        (FUZZED, fuzzed),
        (EXTREMES, extremes),
        (DEVICES, [f"| {where} | {len(PROGRAMS)} | {held} |" for where, held in ON_DEVICES]),
        (LIMITS, list(limits.rows(False))),
    ]
    PAGE.write_text("".join(head + "\n".join(rows) + "\n" for head, rows in tables) + NOT_REPORTED, "utf-8")


def _unchanged(warm: Warm, limits: Named) -> list[str]:
    groups = Named()
    for script in SCRIPTS:
        plain, (under_lens, trace) = warm.plain(script), warm.traced(script)
        groups.add(script.parent.name, script.stem, comparable(plain) == comparable(under_lens))
        _note_gaps(limits, trace, script.stem)
    return [*groups.rows(), groups.total()]


def _note_gaps(limits: Named, trace: Trace, name: str) -> None:
    for reason in dict.fromkeys(gaps(trace)):
        limits.add(reason, name)


def _gone_wrong(limits: Named) -> list[Table]:
    """Makes two tables: the groups of programs, and the endings that their reports name."""
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(_try_out, ENDINGS))
    groups: dict[str, list[Outcome]] = defaultdict(list)
    ends = Named()
    for path, one in zip(ENDINGS, outcomes, strict=True):
        name = f"{path.parent.name}: {path.stem}"
        groups[path.parent.name].append(one)
        ends.add(reported_ending(one.trace), name, one.is_unchanged)
        _note_gaps(limits, one.trace, name)
    rows = [_group(name, members) for name, members in [*groups.items(), ("all", outcomes)]]
    return [(WRONG, rows), (REPORTED_ENDINGS, sorted(ends.rows(False)))]


def _try_out(path: Path) -> Outcome:
    with TemporaryDirectory() as folder:
        return try_out(read(path), Path(folder))


def _group(name: str, members: list[Outcome]) -> str:
    unchanged, recorded = sum(one.is_unchanged for one in members), sum(one.recorded for one in members)
    return f"| {name} | {len(members)} | {unchanged} | {recorded:,} of {CALLS * len(members):,} |"


def _odd(warm: Warm) -> list[str]:
    groups = Named()
    with TemporaryDirectory() as folder:
        script = Path(folder) / "odd.py"
        for name, source in SOURCES.items():
            script.write_bytes(source)
            plain, (under_lens, trace) = warm.plain(script), warm.traced(script)
            groups.add(reported_ending(trace), name, comparable(plain) == comparable(under_lens))
    return [*groups.rows(), groups.total()]


def _made_to_go_wrong() -> Iterator[tuple[str, int, str]]:
    """Yields how tests stress TensorLens: (what they damage or flood, how often, what must hold)."""
    requirement = "the program's output, exceptions and exit status are the plain run's, and the report has a gap"
    yield "functions of the lens that fail whenever they are called", len(INNER + REFERENCE + CLAIMS), requirement
    requirement = "where rows make no sense together the report says that the journal was damaged; 1.5 GB are enough"
    yield "journals with wrong numbers, in circles, ahead, in another order", JOURNALS, requirement
    requirement = "refused in one line, or shown in every form; 1.5 GB are enough"
    yield "trace files with gigantic numbers, ids in circles, chains and lines without end", len(EDITS), requirement
    requirement = "none of them is imported by `explain`, `compare` and `claims`"
    yield "modules in the current directory with the names of python's own and of packages", len(HOSTILE), requirement
    requirement = "the same bytes, and no more memory in either process than a short run takes"
    yield "gigabytes that a program prints", GIGABYTES, requirement


def _compared() -> Iterator[str]:
    """Yields a row per group of test inputs: how much of it the last `make unchanged` has run."""
    done = counts.kept(counts.KEPT.read_text("utf-8")) if counts.KEPT.exists() else {}
    for group in GROUPS:
        tried, samples, random, wrong = done.get(group.name, (0, 0, 0, 0))
        yield f"| {group.name} | {tried} of {len(group.database())} | {samples:,} | {random:,} | {wrong:,} |"


if __name__ == "__main__":
    main()

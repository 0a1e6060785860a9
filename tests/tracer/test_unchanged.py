"""A program under the lens is the program without it: PyTorch's own sample inputs, and programs of every kind.

`make unchanged` runs all operations with all their samples; the everyday suite takes a few of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from support.daily import one_in
from support.folders import PROGRAMS
from support.odd_sources import FAULTS, SOURCES
from support.traces import gap_reasons
from support.warm import Warm, comparable
from unchanged.counts import kept, tell
from unchanged.groups import GROUPS, Group, op_db
from unchanged.observing import MANY, Observed, settled
from unchanged.operations import compare

import tensorlens
from tensorlens.records.invariants import validate
from tensorlens.records.model import Trace
from tensorlens.records.source import text_of

FOLDER = PROGRAMS / "unchanged"
SCRIPTS = sorted(FOLDER.rglob("*.py"))
SLOW = {
    "compile_eager_backend",
    "export",
    "hundred_thousand_live_tensors",
    "dataloader_kinds_of_workers",
}  # several seconds each
GAPS = {
    "script_and_jit_trace": "traced by `torch.jit`: what runs inside is not seen",
    "compile_eager_backend": "compiled by `torch.compile`: what runs inside is not seen",
    "compile_training_step": "compiled by `torch.compile`: what runs inside is not seen",
    "fork_by_hand": "a process was forked: what runs in it is not traced",
    "multiprocessing_fork": "a process was forked: what runs in it is not traced",
    "process_pools": "a process was forked: what runs in it is not traced",
    "torch_multiprocessing": "a process was forked: what runs in it is not traced",
    "multiprocessing_spawn": "a process was started to run `work`: what runs in it is not traced",
    "dataloader_kinds_of_workers": "a process was started to run `_worker_loop`: what runs in it is not traced",
    "dataloader_workers": "a process was forked: what runs in it is not traced",
    "numpy_and_dlpack": "memory is shared with an array outside torch: writes through it are not seen",
}
"""What the report of a program must say that it has not seen."""


def _parts() -> Iterator[Any]:
    for group in GROUPS:
        yield pytest.param(group, None, id=group.name)
        for part in range(group.parts):
            yield pytest.param(group, part, id=f"{group.name} {part}", marks=pytest.mark.complete)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("group", "part"), list(_parts()))
def test_what_pytorch_tests_is_bit_identical(
    group: Group, part: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    tried, (samples, random, wrong) = group.daily_outcome() if part is None else group.outcome(part)
    with capsys.disabled():
        print("\n" + tell(group.name, (tried, samples, random, len(wrong)), part is not None))
    assert wrong == []
    assert samples > 0


def test_a_difference_would_be_seen() -> None:
    class Spoiling(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result.clone() if isinstance(result, torch.Tensor) else result

    op = next(op for op in op_db() if op.name == "view")
    _, _, wrong = compare(op, torch.float32, 1, Spoiling)
    assert {text.rpartition(": ")[2] for text in wrong} >= {"sharing", "tensors"}


@pytest.mark.parametrize("varies_at", [1, MANY, MANY + 1])
def test_what_varies_by_itself_is_no_difference(varies_at: int) -> None:
    def seen(value: int, layout: str = "strided") -> Observed:
        return {"tensors": [{"values": value, "layout": layout}], "other": None}

    runs = iter([0] * (varies_at - 1) + [2])
    expected = (True, []) if varies_at <= MANY else (False, ["tensors"])
    assert settled(seen(0), seen(1), lambda: seen(next(runs))) == expected
    assert settled(seen(0), seen(1, "sparse"), lambda: seen(2)) == (True, ["tensors"])


def _scripts(*daily: str) -> list[Any]:
    """Those of the named groups every day, or of all, less the slow ones."""
    return [
        pytest.param(
            script,
            id=f"{script.parent.name}-{script.stem}",
            marks=[pytest.mark.complete] * (script.stem in SLOW or bool(daily and script.parent.name not in daily)),
        )
        for script in SCRIPTS
    ]


@pytest.mark.parametrize("script", _scripts())
def test_a_program_is_what_it_is_without_the_lens(script: Path, warm: Warm) -> None:
    plain = warm.plain(script)
    under, trace = warm.traced(script)
    assert comparable(under) == comparable(plain)
    assert validate(trace) == []
    assert trace.script.outcome != "killed"
    assert GAPS.get(script.stem, "") in gap_reasons(trace)
    assert "could not be recorded" not in gap_reasons(trace)


@pytest.mark.parametrize("script", _scripts("modes", "subclasses"))
def test_a_program_is_what_it_is_where_it_is_compared_with_a_repetition(script: Path, warm: Warm) -> None:
    under, trace = warm.compared(script)
    assert comparable(under) == comparable(warm.plain(script))
    assert trace.reference is not None
    assert "itself failed" not in (trace.reference.reason or "")
    assert "could not be recorded" not in gap_reasons(trace)


def fault(trace: Trace) -> str:
    """The code that the report says raised the last exception."""
    site = trace.failures[-1].site
    assert site is not None
    span = trace.sites[site].span
    return text_of(trace.sources[span.file], span)


@pytest.mark.parametrize("name", one_in(3, SOURCES))
def test_an_odd_source_is_run_as_it_stands(name: str, warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "odd.py"
    script.write_bytes(SOURCES[name])
    plain = warm.plain(script)
    under, trace = warm.traced(script)
    assert comparable(under) == comparable(plain)
    assert validate(trace) == []
    assert trace.script.exit_code == plain.returncode
    if trace.script.outcome == "error" and trace.failures[-1].type in ("RuntimeError", "ZeroDivisionError"):
        assert fault(trace) in FAULTS


def _attributes() -> dict[tuple[str, str], object]:
    """Every attribute of torch's modules and classes, and of those of the standard library that the lens touches."""
    import multiprocessing.process
    import os
    import sys
    import threading
    import traceback
    import warnings

    owners: list[object] = [sys, os, threading, threading.Thread, traceback, warnings, warnings.catch_warnings]
    owners += [multiprocessing.process, multiprocessing.process.BaseProcess]
    owners += [module for name, module in sorted(sys.modules.items()) if name.split(".")[0] == "torch"]
    owners += [value for owner in owners[9:] for value in list(vars(owner).values()) if issubclass(type(value), type)]
    varying = {"last_exc", "last_traceback", "last_value", "last_type", "__warningregistry__", "__abstractmethods__"}
    return {
        (getattr(owner, "__name__", ""), f"{id(owner)}.{name}"): value
        for owner in owners
        for name, value in list(vars(owner).items())
        if name not in varying
    }


def test_torch_is_as_it_was_attribute_by_attribute() -> None:
    def work() -> None:
        x = torch.ones(2, requires_grad=True)
        torch.optim.SGD([x], lr=0.1)
        (x * 2).sum().backward()

    @tensorlens.trace()
    def decorated() -> None:
        work()

    with tensorlens.trace():
        work()  # what is imported on first use
    before = _attributes()
    filters = list(__import__("warnings").filters)
    for _ in range(3):
        with tensorlens.trace(), tensorlens.trace():
            decorated()
        with pytest.raises(RuntimeError), tensorlens.trace():
            torch.ones(2).backward()
    after = _attributes()
    assert [key for key in before if before[key] is not after.get(key)] == []
    assert set(after) - set(before) == set()
    assert filters == list(__import__("warnings").filters)
    assert len(before) > 10_000


def test_the_counts_of_a_group_are_added_up() -> None:
    lines = [tell("modules", counts, False) for counts in ((3, 40, 1, 0), (2, 2000, 0, 5))]
    assert kept("\n".join([*lines, tell("other things", (1, 1, 1, 1), False), "no counts"])) == {
        "modules": (5, 2040, 1, 5),
        "other things": (1, 1, 1, 1),
    }

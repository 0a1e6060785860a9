"""A program under the lens is the program without it: PyTorch's own sample inputs, and programs of every kind.

`make unchanged` runs all operations with all their samples; the everyday suite takes a few of them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from unchanged import modules, optimizers
from unchanged.operations import DTYPES, compare
from warm import Ran, Warm

import tensorlens
from tensorlens.model import Gap, Trace
from tensorlens.soundness import check

PROGRAMS = Path(__file__).parent / "programs" / "unchanged"
SCRIPTS = sorted(PROGRAMS.rglob("*.py"))
SLOW = {
    "compile_eager_backend",
    "export",
    "hundred_thousand_live_tensors",
    "dataloader_kinds_of_workers",
}  # several seconds each
PARTS = 16  # the everyday suite takes every so many-th operation
GAPS = {
    "script_and_jit_trace": "traced by `torch.jit`: what runs inside is not seen",
    "compile_eager_backend": "compiled by `torch.compile`: what runs inside is not seen",
    "fork_by_hand": "a process was forked: what runs in it is not traced",
    "multiprocessing_fork": "a process was forked: what runs in it is not traced",
    "process_pools": "a process was forked: what runs in it is not traced",
    "torch_multiprocessing": "a process was forked: what runs in it is not traced",
    "multiprocessing_spawn": "a process was started: what runs in it is not traced",
    "dataloader_kinds_of_workers": "a process was started: what runs in it is not traced",
    "dataloader_workers": "a process was forked: what runs in it is not traced",
    "numpy_and_dlpack": "memory is shared with an array outside torch: writes through it are not seen",
}
"""What the report of a program must say that it has not seen."""

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_OWN_FRAME = re.compile(r'  File "[^"]*zygote\.py".*\n.*\n')


def op_db() -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def custom_db() -> list[Any]:
    """Custom Functions, custom operators and higher-order operators."""
    from torch.testing._internal.autograd_function_db import autograd_function_db
    from torch.testing._internal.custom_op_db import custom_op_db
    from torch.testing._internal.hop_db import hop_db

    return [*autograd_function_db, *custom_op_db, *hop_db]


def module_db() -> list[Any]:
    from torch.testing._internal.common_modules import module_db

    return list(module_db)


def optim_db() -> list[Any]:
    from torch.testing._internal.common_optimizers import optim_db

    return list(optim_db)


def _compared(tried: list[Any], limit: int | None, dtypes: Any = DTYPES) -> tuple[int, int, int, list[str]]:
    operations = cases = random = 0
    wrong: list[str] = []
    for op in tried:
        operations += 1
        for dtype in dtypes:
            if dtype in op.dtypes:
                count, undetermined, found = compare(op, dtype, limit)
                cases, random, wrong = cases + count, random + undetermined, wrong + found
    return operations, cases, random, wrong


@pytest.mark.filterwarnings("ignore")
def test_some_operations_are_bit_identical(capsys: pytest.CaptureFixture[str]) -> None:
    operations, cases, random, wrong = _compared(op_db()[::PARTS], 1)
    with capsys.disabled():
        print(f"\n{operations} operations, {cases} samples, {random} without determined values")
    assert wrong == []
    assert cases > 100


@pytest.mark.complete
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_every_operation_is_bit_identical(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    operations, cases, random, wrong = _compared(op_db()[part::PARTS], None)
    with capsys.disabled():
        print(f"\n{operations} operations, {cases} samples, {random} without determined values")
    assert wrong == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("limit", [1, pytest.param(None, marks=pytest.mark.complete)])
def test_custom_functions_and_operators_are_bit_identical(
    limit: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    operations, cases, random, wrong = _compared(custom_db(), limit, (torch.float64, torch.float32))
    with capsys.disabled():
        print(f"\n{operations} custom operations, {cases} samples, {random} without determined values")
    assert wrong == []
    assert operations > 40


def _modules(infos: list[Any], limit: int | None) -> tuple[str, list[str]]:
    found = [modules.compare(info, limit) for info in infos]
    cases, random = (sum(part) for part in zip(*(counts[:2] for counts in found), strict=True))
    return (
        f"{len(infos)} modules, {cases} samples, {random} without determined values",
        [text for _, _, wrong in found for text in wrong],
    )


def _optimizers(infos: list[Any], limit: int | None) -> tuple[str, list[str]]:
    found = [optimizers.compare(info, limit) for info in infos]
    cases, random = (sum(part) for part in zip(*(counts[:2] for counts in found), strict=True))
    return (
        f"{len(infos)} optimizers, {cases} settings, {random} without determined values",
        [text for _, _, wrong in found for text in wrong],
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("part", "limit"), [(slice(None, None, 8), 1), pytest.param(slice(None), None, marks=pytest.mark.complete)]
)
def test_modules_are_bit_identical(part: slice, limit: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    counts, wrong = _modules(module_db()[part], limit)
    with capsys.disabled():
        print(f"\n{counts}")
    assert wrong == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("limit", [1, pytest.param(None, marks=pytest.mark.complete)])
def test_optimizers_are_bit_identical(limit: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    counts, wrong = _optimizers(optim_db(), limit)
    with capsys.disabled():
        print(f"\n{counts}")
    assert wrong == []


def test_a_difference_would_be_seen() -> None:
    class Spoiling(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result.clone() if isinstance(result, torch.Tensor) else result

    op = next(op for op in op_db() if op.name == "view")
    _, _, wrong = compare(op, torch.float32, 1, Spoiling)
    assert {text.rpartition(": ")[2] for text in wrong} >= {"sharing", "tensors"}


def _marks(script: Path) -> list[pytest.MarkDecorator]:
    return [pytest.mark.complete] if script.stem in SLOW else []


def comparable(ran: Ran) -> tuple[int, str, str]:
    texts = [_OWN_FRAME.sub("", _ADDRESS.sub("0x", text)) for text in (ran.stdout, ran.stderr)]
    return ran.returncode, texts[0], texts[1]


def reasons(trace: Trace) -> str:
    return "\n".join(event.reason for event in trace.events if isinstance(event, Gap))


@pytest.mark.parametrize("script", [pytest.param(s, id=f"{s.parent.name}-{s.stem}", marks=_marks(s)) for s in SCRIPTS])
def test_a_program_is_what_it_is_without_the_lens(script: Path, warm: Warm) -> None:
    plain = warm.plain(script)
    under, trace = warm.traced(script)
    assert comparable(under) == comparable(plain)
    assert check(trace) == []
    assert trace.script.outcome != "killed"
    assert GAPS.get(script.stem, "") in reasons(trace)
    assert "could not be recorded" not in reasons(trace)


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

"""The usual calls that put a tensor and an array on the same memory have the rows that the slow path writes."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import numpy
import pytest
import torch
from support.plain_rows import plain_rows
from torch.overrides import TorchFunctionMode

import tensorlens
from tensorlens.tracer.patches import shared_arrays
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors import watched_storages
from tensorlens.tracer.saved_tensors.watched_storage import WatchedStorage, memory_of
from tensorlens.tracer.saved_tensors.watched_storages import WatchedStorages


class _Doubles(TorchFunctionMode):
    """Makes another type of every array, and so a copy."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        more = {"dtype": torch.float64} if func is torch.as_tensor else {}
        return func(*args, **(kwargs or {}), **more)


def _program() -> None:
    """Puts arrays and tensors on the same memory in many ways, and writes some of them."""
    torch.manual_seed(0)
    net, batch = torch.nn.Linear(4, 4), numpy.ones((2, 4), dtype=numpy.float32)
    outputs: list[Any] = []
    for n in range(6):
        fresh = numpy.full((2, 4), n, dtype=numpy.float32)
        inputs = torch.as_tensor(fresh), torch.from_numpy(batch), torch.from_numpy(fresh[1:]), torch.asarray(fresh)
        copies = torch.as_tensor(fresh, dtype=torch.float64), torch.asarray(fresh, copy=True)
        loss = sum((net(tensor.float()).square().mean() for tensor in (*inputs, *copies)), torch.zeros(()))
        batch[n % 2] += n % 3
        with suppress(RuntimeError):
            loss.numpy()
        outputs.append(loss.detach().numpy())
        torch.from_numpy(outputs[-1].reshape(1))
        for unusual in (fresh[::-1], numpy.array(["text"]), numpy.zeros((0, 3)), fresh.astype(">f4"), numpy.float32(1)):
            for make in (torch.as_tensor, torch.from_numpy):
                with suppress(TypeError, ValueError):
                    make(unusual)
        with torch.inference_mode():
            torch.as_tensor(fresh).numpy()
        with _Doubles():
            torch.as_tensor(fresh).numpy()
        with torch.device("meta"):
            torch.as_tensor(fresh)
        net.weight.detach().numpy()[0] += n % 2
        labels, answers = numpy.zeros(2), net(inputs[0])[:, :1].detach().numpy()
        outputs.append(((answers - labels) ** 2).mean())
        with suppress(RuntimeError):
            loss.backward()


def _rows_in_process(*ways: str) -> tuple[list[str], int]:
    """Returns the rows of the program in a process of its own, and how many calls the slow path finished."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, *ways], env=environment, capture_output=True, text=True, check=True
    )
    *rows, calls = done.stdout.splitlines()
    return rows, int(calls)


@pytest.mark.parametrize("run", ["plain", "training"])
def test_short_paths_write_the_rows_of_the_slow_path(run: str) -> None:
    rows, calls = _rows_in_process("short", run)
    long_rows, long_calls = _rows_in_process("long", run)
    assert rows == long_rows
    assert calls < long_calls - 40
    assert any(row.startswith("ArraysBeside(") for row in rows) == (run == "training")


def _main(way: str, run: str) -> None:
    calls: list[Any] = []
    finish = Recorder.finish

    def counted(self: Recorder, called: Any, *rest: Any) -> None:
        calls.append(called[0])
        finish(self, called, *rest)

    Recorder.finish = counted  # type: ignore[assignment, method-assign]
    if way == "long":
        shared_arrays._is_usual = lambda recorder: False
    session = tensorlens.trace(training=run == "training")
    with session:
        recorder = session._recorder
        assert recorder is not None
        _program()
        recorder.rows.settle()
        rows = [*recorder.rows]
    print(*map(repr, plain_rows(rows)), sep="\n")
    print(*session.trace().inspection.arrays_beside, *session.trace().inspection.given_arrays, sep="\n")
    print(len(calls))


def test_a_storage_takes_the_place_of_one_that_is_gone() -> None:
    by_number: dict[int, Any] = {}
    storages = WatchedStorages(by_number, bool)

    def watched(tensor: torch.Tensor) -> WatchedStorage:
        memory = memory_of(tensor)
        assert memory is not None
        return WatchedStorage(memory, "torch.as_tensor", 0, 0, None, external=True)

    array = numpy.ones(8, dtype=numpy.float32)
    kept = torch.from_numpy(array)
    storages.put(1, watched(kept))
    for number in range(2, 6):
        storages.put(number, watched(torch.from_numpy(array)))
    assert set(by_number) == storages.saved == {1, 5}
    assert storages.at(kept.data_ptr() + 4) == [5, 1]
    storages.drop(5)
    assert set(by_number) == storages.saved == {1}
    assert storages.at(kept.data_ptr()) == [1]


class _Late(Exception):
    """A signal handler raises it."""


def _interrupted(change: Callable[[], object], after: int) -> bool:
    """Makes a change, and raises an exception at one of the lines that it runs, if there are so many."""
    left = after

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if event == "line" and frame.f_code.co_filename == watched_storages.__file__:
            left -= 1
            if left < 0:
                raise _Late
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        change()
    except _Late:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_exception_of_a_signal_handler_leaves_the_watched_storages_usable() -> None:
    array, others = numpy.ones(8, dtype=numpy.float32), [numpy.ones(8, dtype=numpy.float32) for _ in range(3)]

    def watched(source: Any) -> WatchedStorage:
        memory = memory_of(torch.from_numpy(source))
        assert memory is not None
        return WatchedStorage(memory, "torch.as_tensor", 0, 0, None, external=True)

    kept, alive = torch.from_numpy(array), [torch.from_numpy(other) for other in others]
    changes: dict[str, Callable[[WatchedStorages], object]] = {
        "put": lambda storages: storages.put(7, watched(array)),
        "put again": lambda storages: storages.put(1, watched(others[2])),
        "drop": lambda storages: storages.drop(2),
        "sweep": lambda storages: storages.sweep(lambda address, number: False),
    }
    for name, change in changes.items():
        after = 0
        while True:
            by_number: dict[int, Any] = {}
            storages = WatchedStorages(by_number, bool)
            for number, source in enumerate((*others, array)):
                storages.put(number, watched(source))
            is_interrupted = _interrupted(functools.partial(change, storages), after)
            for tensor in (kept, *alive):
                assert set(storages.at(tensor.data_ptr())) <= set(by_number), (name, after)
            change(storages)
            storages.sweep(lambda address, number: True)
            for number in list(by_number):
                storages.drop(number)
            assert (by_number, storages.saved, storages.at(kept.data_ptr())) == ({}, set(), []), (name, after)
            if not is_interrupted:
                break
            after += 1
        assert after > 3, name


if __name__ == "__main__":
    _main(*sys.argv[1:])

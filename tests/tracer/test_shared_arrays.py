"""The usual calls that put a tensor and an array on the same memory have the rows that the slow path writes."""

from __future__ import annotations

import os
import subprocess
import sys
from array import array
from contextlib import suppress
from typing import Any

import numpy
import pytest
import torch
from torch.overrides import TorchFunctionMode

import tensorlens
from tensorlens.tracer.patches import shared_arrays
from tensorlens.tracer.recording.recorder import Recorder
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
    for row in rows:
        print(*map(repr, array("q", row) if type(row) is bytes else [row]), sep="\n")
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


if __name__ == "__main__":
    _main(*sys.argv[1:])

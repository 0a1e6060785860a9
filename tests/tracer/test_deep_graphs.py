"""A failed backward pass is explained however deep in the graph its cause is, and the program does not notice."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest
import torch

import tensorlens
from tensorlens.records.failure_context import SavedTensor
from tensorlens.records.model import Gap, Trace
from tensorlens.tracer.isolation.forked_copy import read_in_copy
from tensorlens.tracer.saved_tensors.graph import MAX_NODES

linux = pytest.mark.skipif(sys.platform != "linux", reason="only here a process is copied without the program noticing")


def _overwritten_below(depth: int) -> Trace:
    with tensorlens.trace() as run:
        x = torch.ones(3, requires_grad=True)
        saved = x.exp()
        saved.add_(1)
        y = saved
        for _ in range(depth):
            y = y * 1.5
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    return run.trace()


def _saved(trace: Trace) -> tuple[SavedTensor, ...]:
    (failure,) = trace.failures
    return failure.saved


@linux
def test_the_cause_is_found_below_more_nodes_than_the_process_itself_may_read() -> None:
    trace = _overwritten_below(MAX_NODES + 1_000)
    (saved,) = _saved(trace)
    assert (saved.node, saved.slot, saved.expected, saved.found) == ("ExpBackward0", "result", 0, 1)
    assert saved.sequence is not None
    assert saved.storage is not None
    assert not [event for event in trace.events if isinstance(event, Gap) and "failed graph" in event.reason]


@linux
def test_a_program_that_handles_the_end_of_its_processes_sees_no_other_and_gets_a_gap() -> None:
    ended: list[int] = []
    before = signal.signal(signal.SIGCHLD, lambda number, frame: ended.append(number))
    try:
        trace = _overwritten_below(MAX_NODES + 1_000)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert not ended
    assert [event for event in trace.events if isinstance(event, Gap) and "failed graph" in event.reason]


@linux
def test_a_copy_returns_plain_data_and_runs_nothing_that_the_program_registered_for_its_forks() -> None:
    forks: list[str] = []
    os.register_at_fork(before=lambda: forks.append("before"), after_in_parent=lambda: forks.append("after"))
    parent, interval = os.getpid(), sys.getswitchinterval()
    children = Path(f"/proc/{parent}/task/{threading.get_native_id()}/children")
    others = children.read_text()
    assert read_in_copy(lambda: [(os.getpid() != parent, None, "text", list(forks))]) == [(True, None, "text", [])]
    assert not forks
    assert sys.getswitchinterval() == interval
    assert children.read_text() == others


@linux
def test_a_copy_that_fails_gives_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert read_in_copy(lambda: 1 // 0) is None
    assert read_in_copy(lambda: [object()]) is None
    assert read_in_copy(lambda: os.kill(os.getpid(), signal.SIGKILL)) is None
    assert capfd.readouterr() == ("", "")


@linux
def test_a_copy_is_made_while_another_thread_is_busy() -> None:
    ended = threading.Event()

    def count() -> None:
        number = 0
        while not ended.is_set():
            number += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        assert [read_in_copy(lambda: sum(range(100_000))) for _ in range(3)] == [4_999_950_000] * 3
    finally:
        ended.set()
        thread.join()

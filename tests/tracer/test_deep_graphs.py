"""A failed backward pass is explained however deep in the graph its cause is, and the program does not notice."""

import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
import torch

import tensorlens
from tensorlens.records.failure_context import SavedTensor
from tensorlens.records.model import Gap, Trace
from tensorlens.tracer.isolation.forked_copy import read_in_copy
from tensorlens.tracer.saved_tensors.graph import MAX_NODES, Node, leaves_below
from tensorlens.tracer.saved_tensors.nonfinite_derivatives import NOT_EXAMINED
from tensorlens.tracer.saved_tensors.stale import NOT_COMPARED
from tensorlens.tracer.training.zeroed_gradients import NOT_SEARCHED

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


def _gaps(trace: Trace) -> list[str]:
    return [event.reason for event in trace.events if isinstance(event, Gap)]


@pytest.mark.parametrize("deep", [True, False])
def test_a_graph_that_is_not_read_to_its_end_leaves_a_gap_if_a_gradient_is_not_finite(deep: bool) -> None:
    with tensorlens.trace() as run:
        x = torch.zeros(3, requires_grad=True)
        y = x.sqrt()
        for _ in range(MAX_NODES + 1_000 if deep else 10):
            y = y * 1.00001
        (y * 0).sum().backward()
    trace = run.trace()
    assert (NOT_EXAMINED in _gaps(trace)) is deep
    assert bool(trace.inspection.singular) is not deep


@pytest.mark.parametrize("deep", [True, False])
def test_a_graph_that_is_not_read_to_its_end_leaves_a_gap_after_an_unnoticed_write(deep: bool) -> None:
    with tensorlens.trace() as run:
        x = torch.ones(3, requires_grad=True)
        saved = x * 1
        y = saved * saved
        saved.data.mul_(2)
        for _ in range(MAX_NODES + 1_000 if deep else 10):
            y = y * 1.00001
        y.sum().backward()
    trace = run.trace()
    assert (NOT_COMPARED in _gaps(trace)) is deep
    assert bool(trace.inspection.stale) is not deep


@pytest.mark.parametrize("deep", [True, False])
def test_a_graph_that_is_not_searched_for_what_makes_gradients_zero_leaves_a_gap(deep: bool) -> None:
    with tensorlens.trace(training=True) as run:
        weight = torch.nn.Parameter(-torch.ones(3))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            y = weight.relu()
            for _ in range(MAX_NODES + 1_000 if deep else 10):
                y = y * 1.00001
            y.sum().backward()
            optimizer.step()
    trace = run.trace()
    assert (NOT_SEARCHED in _gaps(trace)) is deep
    assert [each.node for each in trace.inspection.zeroed] == ([] if deep else ["ReluBackward0"])


def test_many_searches_for_leaves_meet_each_node_a_few_times() -> None:
    x = torch.ones(3, requires_grad=True)
    trunk = x
    for _ in range(100):
        trunk = trunk * 1.5
    branches = [trunk * number for number in range(100)]
    read = 0

    def following(node: Node) -> list[Node | None]:
        nonlocal read
        read += 1
        return [each for each, _ in node.next_functions]

    visits = Counter[Node]()
    found = [leaf for branch in branches for leaf in leaves_below([branch.grad_fn], following, visits, 3)]  # type: ignore[list-item]
    assert found == [x, x, x]
    assert read == 100 + 3 * (100 + 1)  # the branches; the trunk and the leaf


@linux
def test_a_pass_that_fails_for_another_reason_than_a_saved_tensor_has_been_read_to_its_end() -> None:
    with tensorlens.trace() as run:
        x, unused = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        y = x
        for _ in range(MAX_NODES + 1_000):
            y = y * 1.5
        with pytest.raises(RuntimeError, match="not have been used"):
            torch.autograd.grad(y.sum(), [x, unused])
    assert not [reason for reason in _gaps(run.trace()) if "failed graph" in reason]


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

"""Finds the calls that queued work on a GPU since the program last waited for it.

A call on a GPU returns before its work is done. An error in that work is noticed at a later call: at any of them, and
at the latest where the program waits. What was queued before an earlier wait that returned has not failed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call, Event

GPU = "cuda"  # also the name of AMD's devices in PyTorch
_READS = frozenset(
    "item tolist cpu is_nonzero equal allclose nonzero __bool__ __float__ __int__ __index__ __complex__ __contains__"
    " __repr__ __format__".split()
)  # return values of their input to Python. `to` may not wait: `non_blocking=True`
_WAITS = ("torch.cuda.synchronize", "torch.accelerator.synchronize")
_ALLOCATIONS = frozenset("empty empty_like empty_strided new_empty new_empty_strided Parameter".split())
_CHECKED = frozenset(
    "embedding embedding_bag cross_entropy nll_loss gather take take_along_dim index_select index_add index_add_"
    " index_copy index_copy_ index_fill index_fill_ index_put index_put_ scatter scatter_ scatter_add scatter_add_"
    " scatter_reduce scatter_reduce_ one_hot multinomial binary_cross_entropy _assert_async".split()
)  # their kernels assert that indices or probabilities are in range
_INDEXING = ("__getitem__", "__setitem__")


@dataclass(frozen=True, slots=True)
class QueuedWork:
    """The work that may be unfinished at an event: the events that queued it, the latest first, each line once."""

    events: tuple[Call | Backward, ...]
    checked: tuple[Call, ...]  # those of them whose kernels assert that values are in range
    wait: Call | None  # the last wait before them
    whole: bool  # nothing that happened since the wait has been folded


def queued_work(facts: TraceIndex, before: int) -> QueuedWork:
    """Returns the work that was queued on GPUs before an event and after the last wait for one."""
    events: dict[tuple[str, int], Call | Backward] = {}
    wait, oldest = None, before
    for event in reversed(facts.events[: facts.trace.position(before)]):
        oldest = event.index
        if isinstance(event, Call) and _waits(facts, event):
            wait = event
            break
        span = facts.span(event.site) if isinstance(event, Call | Backward) else None
        if span is not None and isinstance(event, Call | Backward) and _queues(facts, event):
            line = (span.file, span.line)
            known = events.get(line)
            if known is None or (not _is_checked(facts, known) and _is_checked(facts, event)):
                events[line] = event
    found = tuple(events.values())
    since = 0 if wait is None else oldest
    kept = facts.trace.position(before) - facts.trace.position(since)
    checked = tuple(event for event in found if isinstance(event, Call) and _is_checked(facts, event))
    return QueuedWork(found, checked, wait, kept == before - since)


def _is_on_gpu(facts: TraceIndex, number: int) -> bool:
    return facts.tensor(number).device.startswith(GPU)


def _waits(facts: TraceIndex, call: Call) -> bool:
    if call.op in _WAITS:
        return True
    return call.op.rpartition(".")[2] in _READS and any(_is_on_gpu(facts, one.tensor) for one in call.inputs)


def _queues(facts: TraceIndex, event: Call | Backward) -> bool:
    """Returns whether an event made or changed values on a GPU. A view, and memory without values, take no work."""
    if isinstance(event, Backward):
        return any(_is_on_gpu(facts, root.tensor) for root in event.roots)
    if any(_is_on_gpu(facts, write.tensor) for write in event.writes):
        return True
    if event.op.rpartition(".")[2] in _ALLOCATIONS:
        return False
    shared = {facts.tensor(one.tensor).storage for one in event.inputs} - {None}
    inputs = {one.tensor for one in event.inputs}
    made = (facts.tensor(one.tensor) for one in event.outputs if one.tensor not in inputs)
    return any(_is_on_gpu(facts, one.id) and one.base is None and one.storage not in shared for one in made)


def _is_checked(facts: TraceIndex, event: Event) -> bool:
    """Returns whether the kernel of a call asserts that its indices or probabilities are in range."""
    if not isinstance(event, Call):
        return False
    name = event.op.rpartition(".")[2]
    if name in _INDEXING:
        return any(facts.tensor(one.tensor).dtype.startswith(("int", "uint8")) for one in event.inputs[1:])
    return name in _CHECKED

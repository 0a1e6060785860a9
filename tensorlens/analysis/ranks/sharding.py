"""Finds what goes wrong with the hooks and data types that `fully_shard` sets up in the first forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tensorlens.analysis.lineage import MAX_DEEP, ancestry
from tensorlens.analysis.missing_gradient import GRAD_SET
from tensorlens.analysis.ranks.sharded_run import is_sharded
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import FLAG_SETS
from tensorlens.records.distributed import Sharded, ShardedOutput
from tensorlens.records.model import Access, Backward, Call, Failure, Trace

OUTPUT_WRITTEN, FROZEN_FIRST = "fsdp-output-modified-inplace", "fsdp-first-forward-frozen"
NOT_CALLED = "fsdp-not-called-by-forward"
_FREED, _OTHER_DTYPE, _VIEW = "as-strided-out-of-bounds", "grad-dtype-mismatch", "multi-output-view-modified-inplace"
_WRAPPING = "FullyShardedDataParallel.__init__"


@dataclass(frozen=True)
class LostHook:
    """An output of a sharded module that was written to, and the backward pass that did not run its hook."""

    output: ShardedOutput
    write: Call
    backward: Backward


def lost_hooks(facts: TraceIndex) -> Iterator[LostHook]:
    """Yields the outputs whose hook a write took away: the output was a view, and a write rewrites a view's history.

    If backward does not fail, and the hook of another module ran, that one has done what this one was for.
    """
    ran = facts.trace.inspection.sharded_hooks
    for output in facts.trace.inspection.sharded_outputs:
        write = _first_write(facts, output)
        backward = None if write is None else next(passes_from(facts, output.tensor, write, failed=True), None)
        if write is None or backward is None or backward.inputs:
            continue
        in_pass = [each.number for each in ran if backward.started <= each.index <= backward.index]
        if output.number not in in_pass and (backward.failed or not in_pass):
            yield LostHook(output, write, backward)


def _first_write(facts: TraceIndex, output: ShardedOutput) -> Call | None:
    """Returns the first recorded write to the memory of an output."""
    trace = facts.trace
    counter = trace.tensors[output.tensor].counter
    for event in trace.events[trace.position(output.index) :]:
        if isinstance(event, Backward):
            return None
        if isinstance(event, Call) and event.nodes[1] > event.nodes[0]:
            if any(trace.tensors[write.tensor].counter == counter for write in event.writes):
                return event
    return None


def passes_from(facts: TraceIndex, tensor: int, after: Call, *, failed: bool = False) -> Iterator[Backward]:
    """Yields the passes whose root was computed from a tensor after a call, or is that tensor. With `failed`, also
    those that failed."""
    for backward in facts.backwards:
        if backward.index < after.index or (backward.failed and not failed):
            continue
        for root in backward.roots:
            if root.tensor == tensor or any(
                call.index > after.index and any(access.tensor == tensor for access in call.inputs)
                for _, call in ancestry(facts, root.tensor, backward.index, MAX_DEEP)
            ):
                yield backward
                break


def frozen_at_first(facts: TraceIndex, failure: Failure) -> Sharded | None:
    """Returns the group of a parameter whose gradient a backward pass could not set, if nothing in it required grad in
    the first forward pass: `fully_shard` then does not convert its gradients back."""
    is_in_pass = any(each.failed and each.index == failure.index for each in facts.backwards)
    if not is_in_pass or failure.op != GRAD_SET or not failure.inputs:
        return None
    groups = (each for each in facts.trace.inspection.sharded if failure.inputs[0].tensor in each.tensors)
    return next((each for each in groups if each.computes_in and set(each.kinds) == {"frozen"}), None)


def unfreezing(facts: TraceIndex, group: Sharded) -> Call | None:
    """Returns the first call after the first forward pass that let a parameter of a group require grad: the part that
    this rank holds, or the whole one that the pass has gathered."""
    for call in facts.calls:
        if call.index > group.index and call.op in FLAG_SETS and call.inputs:
            number = call.inputs[0].tensor
            is_own = number in group.tensors or _is_gathered(facts, number, group)
            if is_own and facts.requires_grad(number, call.index):
                return call
    return None


def _is_gathered(facts: TraceIndex, number: int, group: Sharded) -> bool:
    tensor, made = facts.trace.tensors[number], facts.creator(number)
    if made is None or made.op != "nn.Parameter" or made.index <= group.index:
        return False
    return str([*tensor.shape]) in {form.rpartition(" ")[0] for form in group.forms}


def flat_part(facts: TraceIndex, inputs: tuple[Access, ...]) -> Call | None:
    """Returns the call with which `FullyShardedDataParallel` made one of some tensors a view of its flat parameter."""
    for access in inputs:
        made = facts.creator(access.tensor)
        if made is not None and facts.trace.sites[made.site].through == _WRAPPING:
            return made
    return None


def with_kinds_of_sharded(trace: Trace) -> Trace:
    """Returns the trace with the kinds of the failures that `fully_shard` explains: their messages, about memory and
    data types, have other causes elsewhere."""
    if not (trace.failures and is_sharded(trace)):
        return trace
    facts = TraceIndex(trace)
    return replace(trace, failures=tuple(replace(each, kind=_kind(facts, each)) for each in trace.failures))


def _kind(facts: TraceIndex, failure: Failure) -> str:
    if failure.kind == _FREED and any(lost.backward.index == failure.index for lost in lost_hooks(facts)):
        return OUTPUT_WRITTEN
    if failure.kind == _OTHER_DTYPE and frozen_at_first(facts, failure) is not None:
        return FROZEN_FIRST
    if failure.kind == _VIEW and flat_part(facts, failure.inputs) is not None:
        return NOT_CALLED
    return failure.kind

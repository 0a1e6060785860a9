"""Finds the cause of `collective-without-gradient`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.sharding import passes_from
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import as_written, finding, fix, named
from tensorlens.records.distributed import Collective
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic

CODE = "collective-without-gradient"
_CALLED = "torch.distributed.distributed_c10d."
_IN_PLACE = ("all_reduce", "broadcast", "reduce")
_WHY = "a collective has no derivative: backward exchanges nothing with the other ranks here"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports collectives on tensors that require grad, if a loss is computed from the result."""
    seen: set[int] = set()
    for collective in facts.trace.inspection.collectives:
        call = facts.call(collective.index)
        if call is None or len(collective.group) < 2 or call.mode != "grad" or call.site in seen:
            continue
        if call.op == _CALLED + collective.op:
            report = _in_place if collective.op in _IN_PLACE else _gathered if collective.op == "all_gather" else None
            found = None if report is None else report(facts, collective, call)
            if found is not None:
                seen.add(call.site)
                yield found


def _in_place(facts: TraceIndex, _: Collective, call: Call) -> Diagnostic | None:
    """Reports a tensor with a history that a collective wrote: its history stays as it was."""
    tensor = call.inputs[0].tensor if call.inputs else None
    if tensor is None or not facts.requires_grad(tensor, call.index - 1):
        return None
    backward = next(passes_from(facts, tensor, call), None)
    if backward is None:
        return None
    name, code = named(facts, tensor, call.index), as_written(facts, call)
    label = facts.label("called_here", call.site, "writes values of other ranks", call.index)
    place = None if label is None else label.span
    return finding(
        CODE,
        "warning",
        f"backward goes through {code} as if it had changed nothing",
        _WHY,
        [label, facts.label("needed_here", backward.site, f"goes on to what made {name} on this rank")],
        fixes=(
            fix(
                f"if the result is only looked at, write into a copy: {name.rstrip('`')}.detach().clone()`", place=place
            )
            if name.startswith("`")
            else fix("if the result is only looked at, write into a detached copy", place=place),
            fix("or use a collective with a derivative, from `torch.distributed.nn.functional`", place=place),
        ),
        evidence={"collective": call.op.removeprefix(_CALLED), "tensor": name},
    )


def _gathered(facts: TraceIndex, collective: Collective, call: Call) -> Diagnostic | None:
    """Reports gathered copies that a loss uses, also in the place of this rank's own tensor.

    A program that puts its own tensor back there means the others to be constants.
    """
    rank = facts.trace.script.rank
    given = [each.tensor for each in call.inputs if facts.requires_grad(each.tensor, call.index - 1)]
    copies = [each.tensor for each in call.inputs if each.tensor not in given]
    if rank is None or len(given) != 1 or len(copies) != len(collective.group) or rank.number not in collective.group:
        return None
    own = copies[collective.group.index(rank.number)]
    backward = next(passes_from(facts, own, call), None)
    if backward is None or facts.requires_grad(own, call.index):
        return None
    name = named(facts, given[0], call.index)
    has_way = any(each is backward for each in passes_from(facts, given[0], call))
    label = facts.label("called_here", call.site, f"copies {name} as a constant", call.index)
    return finding(
        CODE,
        "note" if has_way else "warning",
        f"{name} gets no gradient through {as_written(facts, call)}: the copies that it fills are constants",
        _WHY,
        [label, facts.label("needed_here", backward.site, "computes the gradient without it")],
        fixes=(
            fix("put this rank's own tensor back into the list after the call: `parts[rank] = ...`"),
            fix("or gather with a derivative: `torch.distributed.nn.functional.all_gather`"),
        ),
        evidence={"collective": "all_gather", "tensor": name},
    )

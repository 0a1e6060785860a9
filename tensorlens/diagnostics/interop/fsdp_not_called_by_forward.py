"""Finds the cause of `fsdp-not-called-by-forward`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.ranks.sharding import NOT_CALLED, flat_part
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import rejected_calls
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic, Fix, Label


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports calls that found only the part of a parameter which this rank holds."""
    for rejected in rejected_calls(facts, NOT_CALLED):
        made = flat_part(facts, rejected.inputs)
        yield _of_shards(rejected) if made is None else _of_flat_parameter(rejected, made)


def _of_shards(rejected: RejectedCall) -> Diagnostic:
    label = rejected.facts.label("rejected_here", rejected.site, "PyTorch refuses this")
    place = None if label is None else label.span
    return _report(
        rejected,
        "a sharded tensor, a `DTensor`, together with a plain one",
        "`fully_shard` gathers parameters when a module is called; any other method of the module finds them sharded",
        (label,),
        (
            fix("if `fully_shard` sharded the module, call the module itself", place=place),
            fix(
                "or let the method gather, too: `register_fsdp_forward_method(module, ...)` of `torch.distributed.fsdp`"
            ),
        ),
    )


def _of_flat_parameter(rejected: RejectedCall, made: Call) -> Diagnostic:
    facts = rejected.facts
    label = facts.label("rejected_here", rejected.site, "runs while parameters are not gathered")
    place = None if label is None else label.span
    return _report(
        rejected,
        "a parameter of which this rank holds only a part",
        "`FullyShardedDataParallel` gathers parameters when it is called; any other method finds views of memory that "
        "holds one part",
        (label, facts.label("wrapped_here", made.site, "divides the parameters among the ranks")),
        (
            fix("call the wrapper itself here", place=place),
            fix("or gather around the call: `with FullyShardedDataParallel.summon_full_params(model):`"),
        ),
    )


def _report(
    rejected: RejectedCall, got: str, why: str, labels: tuple[Label | None, ...], fixes: tuple[Fix, ...]
) -> Diagnostic:
    return finding(
        NOT_CALLED,
        rejected.severity,
        f"{op_text(rejected.op) if rejected.op else 'this'} got {got}",
        why,
        labels,
        fixes=fixes,
        evidence={"op": rejected.op, "message": rejected.message},
    )

"""Describes a cut in the graph: its labels, its cause, its reason and its fixes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tensorlens.analysis.lineage import Cut, leaf_origin
from tensorlens.analysis.plain_values import takes_shape_only
from tensorlens.analysis.trace_index import OPS_ENTERING_TORCH, OPS_LEAVING_TORCH, TraceIndex
from tensorlens.diagnostics.shared.cut_facts import (
    changed_flag,
    cutting_checkpoint,
    frozen_with,
    has_values_beside,
    helper_call,
    is_block,
    is_frozen,
    is_switched_in_threads,
    library_name,
    names_of_frozen,
    recording_off,
    result_dtype,
    switch_of,
    wanted_by_optimizer,
    written,
)
from tensorlens.diagnostics.shared.cut_fixes import (
    joined,
    left_out,
    recording,
    requiring,
    smooth,
    staying_in_torch,
    unfreezing,
)
from tensorlens.diagnostics.shared.cuts_behind import cut_beside, cuts_behind, either, with_cuts_behind
from tensorlens.diagnostics.shared.edits.expressions import with_keyword
from tensorlens.diagnostics.shared.optimizers import several
from tensorlens.diagnostics.shared.wording import fix, named, op_text
from tensorlens.records.model import Call, GradMode
from tensorlens.records.report import Fix, Label

_LISTED = 8  # names of frozen tensors
_PLAIN = {
    "item": "a plain number", "__float__": "a plain number", "__int__": "a plain number", "tolist": "a plain list",
    "numpy": "a NumPy array", "__array__": "a NumPy array", "__dlpack__": "memory that torch does not follow",
}  # fmt: skip


# --- labels ---------------------------------------------------------------------------------------------------------


def cut_labels(facts: TraceIndex, cut: Cut | None, root: int | None = None) -> Iterator[Label | None]:
    """Labels the cut, then the switch that caused it, then the leaf that gets no gradient because of it."""
    if cut is None:
        return
    checkpoint = cutting_checkpoint(facts, cut)
    place = cut.call.site if checkpoint is None else checkpoint.site
    switch = switch_of(facts, cut)
    if switch is not None and not switch.decorator and not is_block(facts, switch):
        yield facts.label("grad_mode_off_here", switch.site, _switch_text(facts, switch))
        yield facts.label("value_made_here", place, _cut_text(facts, cut))
    else:
        yield facts.label("graph_cut_here", place, _cut_text(facts, cut))
        if switch is not None:
            yield facts.label("grad_mode_off_here", switch.site, _switch_text(facts, switch))
    if cut.entered is not None and cut.entered.op in OPS_ENTERING_TORCH:
        yield facts.label("value_made_here", cut.entered.site, "makes a new tensor, without a history")
    if is_frozen(facts, cut):
        yield facts.label("called_here", helper_call(facts, cut), "the call that froze them")
    for behind, numbers in cuts_behind(facts, cut, root)[:1]:
        if not facts.names.syntax.is_direct(facts.trace.sites[behind.call.site], behind.call.op):
            continue
        yield facts.label("graph_cut_here", behind.call.site, f"cuts off {several(facts, numbers[:1])} too")
    if cut.leaf is not None:
        name = named(facts, cut.leaf)
        if cut.source is None:
            born, text = facts.first_use(cut.leaf), f"{name} does not require grad"
        else:
            born = leaf_origin(facts, cut.leaf, cut.call.index)
            text = f"{name} {_beginning(facts, cut.leaf, born) if is_frozen(facts, cut) else 'requires grad'}"
        yield facts.label("leaf_made_here", None if born is None else born.site, text)


def _beginning(facts: TraceIndex, leaf: int, born: Call | None) -> str:
    """Says whether a call makes a leaf, or sets the flag of one that was there before."""
    is_older = born is not None and facts.state(leaf, born.index - 1) is not None
    return "is set to require grad here" if is_older else "is made here"


def _switch_text(facts: TraceIndex, switch: GradMode) -> str:
    if switch.decorator:
        return "gradients are off in this function"
    return "gradients are off in this block" if is_block(facts, switch) else "gradients are off from here on"


def _cut_text(facts: TraceIndex, cut: Cut) -> str:
    op = op_text(cut.call.op)
    if cut.source is None:
        return f"no input of {op} requires grad"
    source = named(facts, cut.source, cut.call.index)
    if is_frozen(facts, cut):
        frozen = frozen_with(facts, cut)
        return f"froze {names_of_frozen(facts, frozen) if len(frozen) <= 2 else f'{len(frozen)} tensors'}"
    if changed_flag(cut):
        return f"removes the history of {source}"
    if cutting_checkpoint(facts, cut) is not None:
        return "ran its function without recording it"
    if recording_off(cut):
        return "not recorded: gradients are off"
    dtype = "" if cut.call.op in OPS_LEAVING_TORCH else result_dtype(facts, cut)
    if dtype:
        beside = "its indices are" if has_values_beside(facts, cut) else "gives"
        return "gives only True or False" if dtype == "bool" else f"{beside} whole numbers ({dtype})"
    if cut.call.op == "autograd.grad":
        return "a gradient without a graph of its own"
    return f"takes only the shape of {source}" if takes_shape_only(cut.call) else cutting_text(cut.call.op, source)


def cutting_text(op: str, source: str) -> str:
    """Says what a call does that returns the values of `source` without their history."""
    if op in OPS_LEAVING_TORCH:
        return f"turns {source} into {_plain(op)}"
    return "makes a new leaf, without a history" if op == "nn.Parameter" else "the gradient stops here"


def _plain(op: str) -> str:
    return _PLAIN[op.rpartition(".")[2]]


# --- cause and reason -----------------------------------------------------------------------------------------------


def cut_cause(facts: TraceIndex, cut: Cut) -> str:
    """Says what ended the history, for a title: "`term.item()` is a plain number"."""
    call = written(facts, cut.call)
    if cut.source is None:
        return "no tensor that it was computed from requires grad"
    if is_frozen(facts, cut):
        frozen = frozen_with(facts, cut)
        frozen = wanted_by_optimizer(facts, frozen)[0] or frozen
        return f"{names_of_frozen(facts, frozen)} {'is' if len(frozen) == 1 else 'are'} frozen"
    if cutting_checkpoint(facts, cut) is not None:
        return "a checkpoint recorded nothing"
    if recording_off(cut) and not changed_flag(cut):
        if switch_of(facts, cut) is not None or is_switched_in_threads(facts, cut):
            return "gradients were switched off"
        return f"{library_name(facts, cut)} gave no gradient history"
    if cut.call.op in OPS_LEAVING_TORCH:
        return f"{call} is {_plain(cut.call.op)}"
    dtype = result_dtype(facts, cut)
    if dtype and not changed_flag(cut):
        if has_values_beside(facts, cut):
            return f"the indices from {call} are whole numbers"
        return f"{call} gives {'only True or False' if dtype == 'bool' else 'whole numbers'}"
    if cut.call.op == "autograd.grad":
        return f"{op_text(cut.call.op)} ran without `create_graph=True`"
    if takes_shape_only(cut.call):
        return f"{call} takes only a shape"
    if cut.call.op == "nn.Parameter":
        return f"{call} is a new leaf"
    return f"{call} stopped the gradient"


def cut_reason(facts: TraceIndex, cut: Cut) -> str:
    """Explains why the history ends at this call."""
    if cut.source is None:
        return "autograd records an operation only if one of its inputs requires grad"
    if is_frozen(facts, cut):
        return "what is computed only from frozen tensors is a constant to autograd"
    if changed_flag(cut):
        return f"{op_text(cut.call.op)} removes the path back to what the tensor was computed from"
    if cutting_checkpoint(facts, cut) is not None:
        return "a checkpoint with `use_reentrant=True` records its result only if one of its inputs requires grad"
    if recording_off(cut):
        return "what is computed while gradients are off is a constant to autograd"
    if cut.call.op in OPS_LEAVING_TORCH:
        return "what is computed from plain values is a constant to autograd"
    if cut.call.op == "autograd.grad":
        return "a gradient has a graph of its own only if it was asked for with `create_graph=True`"
    if result_dtype(facts, cut):
        return "only floating point and complex numbers have gradients"
    if takes_shape_only(cut.call):
        return "the result does not depend on the values, so no gradient leads back to them"
    if cut.call.op == "nn.Parameter":
        return "a parameter is a leaf: gradients end there, and what it was made from gets none"
    return f"what {op_text(cut.call.op)} returns has no history: it is a constant to autograd"


def cut_detail(facts: TraceIndex, cut: Cut | None) -> tuple[str, ...]:
    """Lists the tensors that a line froze, if it froze several and each has a name of its own."""
    if cut is None or not is_frozen(facts, cut):
        return ()
    names = [named(facts, number) for number in frozen_with(facts, cut)]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return (f"frozen: {', '.join(names[:_LISTED])}{more}",) if 1 < len(names) == len({*names}) else ()


# --- fixes ----------------------------------------------------------------------------------------------------------


def cut_fixes(facts: TraceIndex, cut: Cut | None, root: int | None = None) -> Iterator[Fix]:
    """Suggests fixes for this cut, the safest first. `root` is the result that lost its history."""
    if cut is None:
        return
    fixes, behind, beside = (
        list(_fixes_of(facts, cut, root)),
        cuts_behind(facts, cut, root),
        cut_beside(facts, cut, root),
    )
    if beside is not None and fixes:
        one = replace(fixes[0], edits=()) if result_dtype(facts, cut) else either(facts, fixes[0], beside)
        yield from [one, *fixes[1:]]
        return
    yield from [with_cuts_behind(facts, fixes[0], behind), *fixes[1:]] if fixes and behind else fixes


def _fixes_of(facts: TraceIndex, cut: Cut, root: int | None) -> Iterator[Fix]:
    here = facts.span(cut.call.site)
    if cut.source is None:
        yield from requiring(facts, cut)
    elif is_frozen(facts, cut):
        yield from unfreezing(facts, cut)
    elif recording_off(cut) and not changed_flag(cut):
        yield from recording(facts, cut, root)
    elif cut.left_torch is not None or cut.call.op in OPS_LEAVING_TORCH:
        yield from staying_in_torch(facts, cut)
    elif cut.call.op == "nn.Parameter":
        text = "leave the value a plain tensor, and compute the layer with it: `torch.func.functional_call()`"
        yield fix(text, place=here)
    elif cut.call.op == "autograd.grad":
        edit = with_keyword(facts, cut.call.site, "create_graph", "True")
        text = "pass `create_graph=True` to the call that computes the gradient"
        yield fix(text, *(edit,) if edit else (), place=here)
    elif cut.call.op in ("torch.tensor", "torch.as_tensor"):
        yield joined(facts, cut)
    elif result_dtype(facts, cut) and not changed_flag(cut):
        yield smooth(facts, cut)
    elif takes_shape_only(cut.call):
        yield fix(f"compute the result from {named(facts, cut.source, cut.call.index)} itself", place=here)
    elif facts.names.syntax.is_direct(facts.trace.sites[cut.call.site], cut.call.op):
        yield from left_out(facts, cut)
    else:
        source = named(facts, cut.source, cut.call.index)
        yield fix(f"use {source} itself, if the gradient is to go back to it", place=here)

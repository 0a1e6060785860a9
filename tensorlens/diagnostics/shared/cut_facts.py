"""Finds out how a cut ended the history: a switch, a frozen leaf, a checkpoint, plain values, whole numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.contexts import open_region
from tensorlens.analysis.lineage import Cut, ancestry, reads_gradient
from tensorlens.analysis.plain_values import may_require_grad
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.optimizers import several
from tensorlens.diagnostics.shared.wording import named, op_text, source_text
from tensorlens.records.model import Call, GradMode, Region


def written(facts: TraceIndex, call: Call) -> str:
    """Returns a call as the script writes it, in backticks; its op or the library function, if its text is long."""
    site = facts.trace.sites[call.site]
    if site.through:
        return f"`{site.through}()`"
    converts = call.op in ("Tensor.__float__", "Tensor.__int__")
    text = source_text(facts, call.site) if converts or facts.names.syntax.is_direct(site, call.op) else ""
    return f"`{text}`" if text and not text.endswith("…") else op_text(call.op)


def recording_off(cut: Cut) -> bool:
    return cut.call.mode != "grad"


def changed_flag(cut: Cut) -> bool:
    """Returns whether the cut is a call such as `requires_grad_(False)` or `detach_()`, which changed its own input."""
    return cut.source in {access.tensor for access in cut.call.inputs} & {state.tensor for state in cut.call.states}


def is_frozen(facts: TraceIndex, cut: Cut) -> bool:
    """Returns whether the cut is a call that made a leaf stop requiring grad."""
    before = None if cut.source is None else facts.state(cut.source, cut.call.index - 1)
    return changed_flag(cut) and before is not None and before.is_leaf


def frozen_with(facts: TraceIndex, cut: Cut) -> list[int]:
    """Lists the leaves that the line of the cut froze, in its order, and that were still frozen at the end."""
    frozen: list[int] = []
    for call in facts.calls:
        if call.site != cut.call.site:
            continue
        for state in call.states:
            was = facts.requires_grad(state.tensor, call.index - 1)
            if was and not state.requires_grad and not facts.requires_grad(state.tensor, facts.events[-1].index):
                frozen.append(state.tensor)
    return list(dict.fromkeys(frozen)) or [cut.source or 0]


def names_of_frozen(facts: TraceIndex, numbers: list[int]) -> str:
    """Names tensors that were frozen: "`m.weight` and 3 more", "4 tensors" if they have no names of their own."""
    names = {named(facts, number) for number in numbers}
    return several(facts, numbers) if len(names) == len(numbers) else f"{len(numbers)} tensors"


def wanted_by_optimizer(facts: TraceIndex, numbers: list[int]) -> tuple[list[int], Call | None]:
    """Returns those of the tensors that an optimizer was made of, and the call that made it; (none, None) if none."""
    for made in reversed(facts.calls):
        held = {access.tensor for access in made.inputs} if made.op.startswith("optim.") else set()
        if own := [number for number in numbers if number in held]:
            return own, made
    return [], None


def helper_call(facts: TraceIndex, cut: Cut) -> int | None:
    """Finds the site that called the function which froze a leaf; None at the top level, and for `__init__`."""
    site = facts.trace.sites[cut.call.site]
    return None if site.function == "<module>" or site.function.endswith("__init__") else site.caller


def cutting_checkpoint(facts: TraceIndex, cut: Cut) -> Region | None:
    """Finds the checkpoint that ran the call of a cut without recording."""
    if cut.source is None or not recording_off(cut) or facts.mode_switch(cut.call.index) is not None:
        return None
    return open_region(facts, cut.call.index, "checkpoint")


def switch_of(facts: TraceIndex, cut: Cut) -> GradMode | None:
    """Finds the switch of gradient recording, such as the script's `no_grad`, that caused the cut."""
    if cut.source is None or changed_flag(cut) or not recording_off(cut):
        return None
    return facts.mode_switch(cut.call.index)


def is_switched_in_threads(facts: TraceIndex, cut: Cut) -> bool:
    """Returns whether the switch that caused a cut is not known because several threads switched their modes."""
    return recording_off(cut) and bool(facts.trace.inspection.switching) and facts.mode_switch(cut.call.index) is None


def is_block(facts: TraceIndex, switch: GradMode) -> bool:
    """Returns whether a switch is a `with` statement."""
    span = facts.span(switch.site)
    return span is not None and isinstance(facts.names.syntax.node(span), ast.With | ast.AsyncWith)


def custom_apply(facts: TraceIndex, cut: Cut) -> Call | None:
    """Finds the call of the custom Function whose `forward` made the call of a cut: it runs without recording."""
    caller = facts.trace.sites[cut.call.site].caller
    calls = (call for call in facts.calls if call.index > cut.call.index and call.site == caller)
    return next((call for call in calls if call.op.endswith(".apply")), None)


def has_values_beside(facts: TraceIndex, cut: Cut) -> bool:
    """Returns whether the call of a cut returned floating point values beside whole numbers, as `topk()` does."""
    return any(may_require_grad(facts.tensor(access.tensor)) for access in cut.call.outputs)


def result_dtype(facts: TraceIndex, cut: Cut) -> str:
    """Returns "bool", or the name of an integer type, if the call of a cut returned such a tensor; else ""."""
    dtypes = [facts.tensor(access.tensor).dtype for access in cut.call.outputs]
    return next((dtype for dtype in dtypes if dtype.startswith(("int", "uint", "bool"))), "")


def expected_position(facts: TraceIndex, cut: Cut) -> str:
    """Returns code for the differentiable counterpart of `argmax` along a dimension; "" if the source does not show it.

    "(maps.softmax(2) * torch.arange(16).view(-1, 1)).sum(2)" is the mean of the positions, weighted by `softmax`.
    """
    name, span = cut.call.op.rpartition(".")[2], facts.span(cut.call.site)
    node = None if span is None else facts.names.syntax.node(span)
    if name not in ("argmax", "argmin") or not isinstance(node, ast.Call) or cut.source is None:
        return ""
    method = cut.call.op.startswith("Tensor.") and isinstance(node.func, ast.Attribute)
    value = node.func.value if method and isinstance(node.func, ast.Attribute) else next(iter(node.args), None)
    given = dict(_given(node, method))
    shape = facts.tensor(cut.source).shape
    dim = given.get("dim")
    if (
        not isinstance(value, ast.Name | ast.Attribute)
        or not isinstance(dim, int)
        or not -len(shape) <= dim < len(shape)
    ):
        return ""
    text, behind = ast.unparse(value), len(shape) - 1 - dim % len(shape)
    positions = f"torch.arange({shape[dim]})" + (f".view({', '.join(['-1', *['1'] * behind])})" if behind else "")
    weights = f"{text}.softmax({dim})" if name == "argmax" else f"(-{text}).softmax({dim})"
    return f"({weights} * {positions}).sum({dim}{', keepdim=True' if given.get('keepdim') is True else ''})"


def _given(node: ast.Call, method: bool) -> Iterator[tuple[str, object]]:
    """Yields name and value of the arguments of `argmax` that are written as constants."""
    rest = node.args if method else node.args[1:]
    for name, argument in (
        *zip(("dim", "keepdim"), rest, strict=False),
        *((k.arg or "", k.value) for k in node.keywords),
    ):
        try:
            yield name, ast.literal_eval(argument)
        except ValueError:
            continue


def library_name(facts: TraceIndex, cut: Cut) -> str:
    """Returns what library code the script called that made the call of a cut, in backticks."""
    apply, through = custom_apply(facts, cut), facts.trace.sites[cut.call.site].through
    if apply is not None:
        return op_text(apply.op)
    return f"`{through}()`" if through else op_text(cut.call.op)


def is_update_by_hand(facts: TraceIndex, cut: Cut) -> bool:
    """Returns whether an unrecorded call updates a leaf by hand: it computes from the leaf and its gradient."""
    made = cut.call.outputs[0].tensor if cut.call.outputs else None
    state = None if cut.source is None else facts.state(cut.source, cut.call.index)
    if made is None or state is None or not state.is_leaf:
        return False
    above = (call for _, call in ancestry(facts, made, cut.call.index + 1) if reads_gradient(call))
    return any(call.inputs and call.inputs[0].tensor == cut.source for call in above)

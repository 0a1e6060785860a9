"""Suggests fixes for a cut: what to use, move or leave out so that the gradient goes back past it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.lineage import Cut, is_update_by_hand
from tensorlens.analysis.naming.places import callers
from tensorlens.analysis.trace_index import OPS_ENTERING_TORCH, OPS_LEAVING_TORCH, TraceIndex
from tensorlens.diagnostics.shared.cut_facts import (
    custom_apply,
    cutting_checkpoint,
    expected_position,
    frozen_with,
    has_values_beside,
    helper_call,
    is_block,
    library_name,
    result_dtype,
    switch_of,
    wanted_by_optimizer,
    written,
)
from tensorlens.diagnostics.shared.optimizers import made_name, several
from tensorlens.diagnostics.shared.wording import fix, named, op_text, source_text
from tensorlens.records.model import GradMode, Span
from tensorlens.records.report import Fix

_REPARAMETRIZED = (
    "Beta",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Exponential",
    "Gamma",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "InverseGamma",
    "Kumaraswamy",
    "Laplace",
    "LogNormal",
    "LowRankMultivariateNormal",
    "MultivariateNormal",
    "Normal",
    "Pareto",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "Uniform",
    "Weibull",
    "Wishart",
)  # distributions that have `rsample()`


def unfreezing(facts: TraceIndex, cut: Cut) -> Iterator[Fix]:
    """Suggests to freeze less, at the call of the function that froze the tensors."""
    frozen = frozen_with(facts, cut)
    wanted, optimizer = wanted_by_optimizer(facts, frozen)
    helper = helper_call(facts, cut)
    place = facts.span(cut.call.site if helper is None else helper)
    if optimizer is not None and len(wanted) < len(frozen):
        names = several(facts, wanted)
        text = f"do not freeze {names}: `{made_name(facts, optimizer)}` is to train them"
        yield fix(text, place=place)
        yield fix(f"or let {names} require grad again after this line: `requires_grad_()` on each", place=place)
    else:
        yield fix("freeze only what is not to be trained: here all of it is frozen", place=place)


def recording(facts: TraceIndex, cut: Cut) -> Iterator[Fix]:
    """Suggests how to record a call that ran while gradients were off."""
    switch, checkpoint = switch_of(facts, cut), cutting_checkpoint(facts, cut)
    here = facts.span(cut.call.site)
    if checkpoint is not None:
        yield fix("pass `use_reentrant=False` to the checkpoint", place=facts.span(checkpoint.site))
    elif switch is None:
        yield fix(_in_place_of(facts, cut), place=here)
    elif is_update_by_hand(facts, cut):
        leaf = named(facts, cut.source, cut.call.index)
        yield fix(
            f"update {leaf} in place (`-=`, `copy_()`): it stays the leaf that it was",
            place=here,
        )
    elif switch.decorator:
        text = "remove the decorator, and put `with torch.no_grad():` around what needs no gradient"
        yield fix(text, place=facts.span(switch.site))
    elif is_block(facts, switch):
        yield _outside_block(facts, cut, switch)
    else:
        text = "use `with torch.no_grad():` around what needs no gradient: gradients are on again after it"
        yield fix(text, place=facts.span(switch.site))


def _in_place_of(facts: TraceIndex, cut: Cut) -> str:
    """Suggests what to use in place of a library function that does not record."""
    through = facts.trace.sites[cut.call.site].through
    if custom_apply(facts, cut) is not None:
        return "return tensors from `forward` one by one or in a tuple: only these get a history"
    if through.endswith(".sample"):
        if through.partition(".")[0] in _REPARAMETRIZED:
            return f"use `rsample()` in place of `{through}()`: its gradient goes back to the distribution"
        return "a sample has no gradient: put its `log_prob()` times the reward into the loss"
    return f"compute this without {library_name(facts, cut)}"


def _outside_block(facts: TraceIndex, cut: Cut, switch: GradMode) -> Fix:
    """Suggests to move the line of the block that ran the call of a cut, directly or through functions."""
    block, site = facts.span(switch.site), cut.call.site
    for number in (site, *callers(facts.trace, site)):
        place = facts.span(number)
        if block is not None and place is not None and _inside(place, block):
            return fix(f"move this, and what is computed from it, out of the `{switch.cause}` block", place=place)
    return fix(f"compute what needs a gradient outside of the `{switch.cause}` block", place=block)


def _inside(span: Span, block: Span) -> bool:
    return span.file == block.file and block.line < span.line and span.end_line <= block.end_line


def staying_in_torch(facts: TraceIndex, cut: Cut) -> Iterator[Fix]:
    """Suggests the tensor itself where plain values were used, and where they became a tensor again."""
    source, entered = named(facts, cut.source, cut.call.index), cut.entered
    again = entered is not None and entered.op in OPS_ENTERING_TORCH
    name = cut.call.op.rpartition(".")[2]
    if again and entered is not None and cut.call.op in OPS_LEAVING_TORCH and name in ("item", "__float__"):
        line = facts.trace.sites[entered.site].span.line
        back = source_text(facts, entered.site)
        joined = _joined(facts, cut)
        text = f"keep the tensor {source} here, and on line {line} use `{joined}` in place of `{back}`"
        if not joined:
            text = f"keep the tensor {source} here, and leave out {op_text(entered.op)} on line {line}"
        yield fix(text, place=facts.span(cut.call.site))
    elif again and entered is not None:
        text = f"compute this in torch from {source}; NumPy and plain values can stay where no gradient is needed"
        yield fix(text, place=facts.span(entered.site))
    else:
        text = f"use the tensor {source} where the gradient is needed, and {op_text(cut.call.op)} only to print or log"
        yield fix(text, place=facts.span(cut.call.site))


def _joined(facts: TraceIndex, cut: Cut) -> str:
    """Returns "torch.stack(losses)" for `torch.tensor(losses)` of several values; "" if it made a single number."""
    entered = cut.entered
    span = None if entered is None else facts.span(entered.site)
    node = None if span is None else facts.names.syntax.node(span)
    shape = facts.tensor(entered.outputs[0].tensor).shape if entered is not None and entered.outputs else ()
    if len(shape) != 1 or not isinstance(node, ast.Call) or not node.args or isinstance(node.args[0], ast.Starred):
        return ""
    return f"torch.stack({ast.unparse(node.args[0])})"


def smooth(facts: TraceIndex, cut: Cut) -> Fix:
    """Suggests a differentiable function in place of one that gives whole numbers or truth values."""
    here, call = facts.span(cut.call.site), written(facts, cut.call)
    if facts.trace.sites[cut.call.site].through.endswith(".sample"):
        return fix(_in_place_of(facts, cut), place=here)
    if has_values_beside(facts, cut):
        return fix("use the values that it returns beside the indices: they have a gradient", place=here)
    position = expected_position(facts, cut)
    if position:
        return fix(f"use the mean position, which has a gradient: `{position}`", place=here)
    if result_dtype(facts, cut) == "bool":
        return fix(f"use a smooth function of the values in place of {call}, such as `sigmoid()`", place=here)
    source = named(facts, cut.source, cut.call.index)
    return fix(f"compute the loss from {source} with operations that give floating point numbers", place=here)

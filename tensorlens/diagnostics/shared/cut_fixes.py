"""Suggests fixes for a cut: what to use, move or leave out so that the gradient goes back past it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.lineage import Cut, ancestry, leaving_before
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.plain_values import may_require_grad
from tensorlens.analysis.trace_index import OPS_ENTERING_TORCH, OPS_LEAVING_TORCH, TraceIndex
from tensorlens.diagnostics.shared.cut_facts import (
    custom_apply,
    cutting_checkpoint,
    expected_position,
    frozen_with,
    has_values_beside,
    helper_call,
    is_block,
    is_switched_in_threads,
    is_update_by_hand,
    library_name,
    result_dtype,
    switch_of,
    wanted_by_optimizer,
    written,
)
from tensorlens.diagnostics.shared.edits.cuts import (
    argument_itself,
    in_torch,
    needs_number,
    tied,
    values_for_indices,
    without_conversion,
    without_method,
)
from tensorlens.diagnostics.shared.edits.expressions import with_keyword
from tensorlens.diagnostics.shared.edits.grad_switches import only_around, unwrapped, without_decorator
from tensorlens.diagnostics.shared.edits.statements import inserted_before
from tensorlens.diagnostics.shared.kept import described
from tensorlens.diagnostics.shared.optimizers import made_name, several
from tensorlens.diagnostics.shared.wording import fix, named, op_text, source_text, with_method
from tensorlens.records.model import Call, GradMode, Span
from tensorlens.records.report import Edit, Fix

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


def _trained(facts: TraceIndex, cut: Cut) -> str:
    """Names a leaf that requires grad at a cut where no input does, if that leaf is not itself such an input."""
    for call in facts.calls:
        for state in call.states if call.index < cut.call.index else ():
            if facts.is_leaf_requiring_grad(state.tensor, cut.call.index):
                return named(facts, state.tensor)
    return ""


def requiring(facts: TraceIndex, cut: Cut) -> Iterator[Fix]:
    """Suggests what is to require grad where no input of a result does."""
    trained, leaf = _trained(facts, cut), facts.first_use(cut.leaf or 0)
    if trained:
        yield fix(
            f"compute it from what is to be trained: {trained} requires grad, and no tensor here leads to it",
            place=facts.span(cut.call.site),
        )
        return
    candidates = [access.tensor for access in cut.call.inputs if may_require_grad(facts.tensor(access.tensor))]
    if len(set(candidates)) != 1:
        yield fix("make what is to be trained require grad before use", place=facts.span(cut.call.site))
        return
    flag = with_method(named(facts, cut.leaf), "requires_grad_()")
    place = None if leaf is None else facts.span(leaf.site)
    yield fix(f"make what is to be trained require grad before use: {flag}", place=place)


def unfreezing(facts: TraceIndex, cut: Cut) -> Iterator[Fix]:
    """Suggests to freeze less: what an optimizer is made of requires grad again."""
    frozen = frozen_with(facts, cut)
    wanted, optimizer = wanted_by_optimizer(facts, frozen)
    helper = helper_call(facts, cut)
    place = facts.span(cut.call.site if helper is None else helper)
    if optimizer is None or len(wanted) == len(frozen):
        yield fix("freeze only what is not to be trained: here all of it is frozen", place=place)
        return
    names, made = several(facts, wanted), facts.trace.sites[optimizer.site].span
    module = _module_of(facts, optimizer)
    edit = None
    if module and set(wanted) == {access.tensor for access in optimizer.inputs}:
        edit = inserted_before(facts, made.file, made.line, f"{module}.requires_grad_()")
    if edit is not None:
        text = f"`{made_name(facts, optimizer)}` is to train {names}: let `{module}` require grad again before it"
        yield fix(text, edit)
        yield fix(f"or do not freeze {names} here", place=place)
        return
    yield fix(f"do not freeze {names}: `{made_name(facts, optimizer)}` is to train them", place=place)
    yield fix(f"or let {names} require grad again after this line: `requires_grad_()` on each", place=place)


def _module_of(facts: TraceIndex, optimizer: Call) -> str:
    """Returns `model.fc` of `SGD(model.fc.parameters(), lr=0.1)`; "" for other arguments."""
    node = facts.names.syntax.node(facts.trace.sites[optimizer.site].span)
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if not isinstance(given, ast.Call) or given.args or not isinstance(given.func, ast.Attribute):
        return ""
    return (plain_name(given.func.value) or "") if given.func.attr == "parameters" else ""


def left_out(facts: TraceIndex, cut: Cut) -> Iterator[Fix]:
    """Suggests to leave out a `detach()` or `.data`. Two parameters that share memory are tied by assignment."""
    here, op = facts.span(cut.call.site), op_text(cut.call.op)
    both = None if here is None else tied(facts, here)
    if both is not None:
        made = any(call.op.startswith("optim.") and call.index < cut.call.index for call in facts.calls)
        first = "" if not made else ", before the optimizer is made"
        yield fix(f"assign the parameter itself{first}: `{both[0]}`", *(() if made else both[1]), place=here)
        return
    left = None if here is None else without_method(facts, here, ("detach", "data"))
    text = f"leave out {op} if the gradient is to go back past this line"
    yield fix(text, *(left,) if left else (), place=here)


def recording(facts: TraceIndex, cut: Cut, root: int | None) -> Iterator[Fix]:
    """Suggests how to record a call that ran while gradients were off."""
    switch, checkpoint = switch_of(facts, cut), cutting_checkpoint(facts, cut)
    here = facts.span(cut.call.site)
    if checkpoint is not None:
        edit = with_keyword(facts, checkpoint.site, "use_reentrant", "False")
        yield fix(
            "pass `use_reentrant=False` to the checkpoint", *(edit,) if edit else (), place=facts.span(checkpoint.site)
        )
        return
    if switch is None:
        yield fix(_in_place_of(facts, cut), place=here)
        return
    place = facts.trace.sites[switch.site].span
    if is_update_by_hand(facts, cut):
        leaf = named(facts, cut.source, cut.call.index)
        yield fix(f"update {leaf} in place (`-=`, `copy_()`): it stays the leaf that it was", place=here)
    elif switch.decorator:
        edit = without_decorator(facts, place)
        text = "remove the decorator, and put `with torch.no_grad():` around what needs no gradient"
        yield fix(text, *(edit,) if edit else (), place=place)
    elif is_block(facts, switch):
        yield _outside_block(facts, cut, switch, root)
    else:
        edits = only_around(facts, place, _lines_below(facts, switch, root), _lines_in(facts, switch))
        text = "use `with torch.no_grad():` around what needs no gradient: gradients are on again after it"
        if len(edits) == 1 and not edits[0].text:
            text = "leave this switch out: the lines below it need gradients"
        elif len(edits) == 1:
            text = "switch gradients on again in the other case"
        yield fix(text, *edits, place=place)


def _lines_in(facts: TraceIndex, switch: GradMode) -> set[int]:
    """Returns the lines of a switch's function that computed something while gradients were off."""
    function = facts.scope(switch.site)
    calls = (call for call in facts.calls if call.index > switch.index and call.mode != "grad")
    sites = {site for call in calls for site in facts.call_chain(call.site)}
    return {facts.trace.sites[n].span.line for n in sites if facts.scope(n) == function}


def _lines_below(facts: TraceIndex, switch: GradMode, root: int | None) -> set[int]:
    """Returns the lines of a switch's function that computed `root` while gradients were off."""
    function, lines = facts.scope(switch.site), set[int]()
    end = facts.events[-1].index + 1 if facts.events else 0
    for _, call in ancestry(facts, root, end) if root is not None else ():
        if call.index > switch.index and call.mode != "grad":
            sites = facts.call_chain(call.site)
            own = (n for n in sites if facts.scope(n) == function)
            lines.update(facts.trace.sites[n].span.line for n in own)
    return lines


def _in_place_of(facts: TraceIndex, cut: Cut) -> str:
    """Suggests what to use in place of a library function that does not record."""
    through = facts.trace.sites[cut.call.site].through
    if custom_apply(facts, cut) is not None:
        return "return tensors from `forward` one by one or in a tuple: only these get a history"
    if through.endswith(".sample"):
        if through.partition(".")[0] in _REPARAMETRIZED:
            return f"use `rsample()` in place of `{through}()`: its gradient goes back to the distribution"
        return "a sample has no gradient: put its `log_prob()` times the reward into the loss"
    if is_switched_in_threads(facts, cut):
        return "compute this where gradients are recorded"
    return f"compute this without {library_name(facts, cut)}"


def _outside_block(facts: TraceIndex, cut: Cut, switch: GradMode, root: int | None) -> Fix:
    """Suggests to move the line of the block that ran the call of a cut, directly or through functions."""
    block, site = facts.span(switch.site), cut.call.site
    edits = () if block is None else unwrapped(facts, block, _lines_below(facts, switch, root))
    for number in facts.call_chain(site):
        place = facts.span(number)
        if block is not None and place is not None and _inside(place, block):
            text = f"move this, and what is computed from it, out of the `{switch.cause}` block"
            return fix(text, *edits, place=place)
    return fix(f"compute what needs a gradient outside of the `{switch.cause}` block", *edits, place=block)


def _inside(span: Span, block: Span) -> bool:
    return span.file == block.file and block.line < span.line and span.end_line <= block.end_line


def staying_in_torch(facts: TraceIndex, cut: Cut) -> Iterator[Fix]:
    """Suggests the tensor itself where plain values were used, and where they became a tensor again."""
    source, entered = described(facts, cut.source, cut.call.index), cut.entered
    again = entered is not None and entered.op in OPS_ENTERING_TORCH
    name, here = cut.call.op.rpartition(".")[2], facts.trace.sites[cut.call.site].span
    if again and entered is not None and cut.call.op in OPS_LEAVING_TORCH and name in ("item", "__float__"):
        line, back = facts.trace.sites[entered.site].span.line, source_text(facts, entered.site)
        instead = _joined(facts, cut)
        kept = without_conversion(facts, here)
        used = argument_itself(facts, facts.trace.sites[entered.site].span, bool(instead))
        others = _also_left(facts, cut, entered)
        also = [without_conversion(facts, facts.trace.sites[site].span) for site in others]
        found = [edit for edit in (kept, *also, used) if edit is not None]
        apart = all(not _overlap(one.span, used.span) for one in found if used is not None and one is not used)
        places = [here, *(facts.trace.sites[site].span for site in others)]
        is_free = apart and not any(needs_number(facts, each) for each in places)
        edits = tuple(found) if used is not None and is_free and len(found) == len(others) + 2 else ()
        kind = "tensors" if others else "a tensor"
        if others:
            lines = sorted({facts.trace.sites[site].span.line for site in others} - {here.line})
            source += f", and what line {' and '.join(map(str, lines))} converts," if lines else " and the others"
        text = f"keep {source} as {kind} here, and on line {line} use `{instead}` in place of `{back}`"
        if not instead:
            text = f"keep {source} as {kind} here, and leave out {op_text(entered.op)} on line {line}"
        yield fix(text, *edits, place=here)
    elif again and entered is not None:
        place = facts.trace.sites[entered.site].span
        edit = in_torch(facts, place)
        text = f"compute this in torch from {source}; NumPy and plain values can stay where no gradient is needed"
        yield fix(text, *(edit,) if edit else (), place=place)
    else:
        text = f"use {source} itself where the gradient is needed, and {op_text(cut.call.op)} only to print or log"
        yield fix(text, place=here)


def _also_left(facts: TraceIndex, cut: Cut, entered: Call) -> list[int]:
    """Lists the other sites at which values that can be those of `entered` left torch, with a history."""
    calls = (call for call in leaving_before(facts, entered) if facts.requires_grad(call.inputs[0].tensor, call.index))
    return [site for site in dict.fromkeys(call.site for call in calls) if site != cut.call.site]


def _overlap(one: Span, other: Span) -> bool:
    return one.file == other.file and one.line <= other.end_line and other.line <= one.end_line


def joined(facts: TraceIndex, cut: Cut) -> Fix:
    """Suggests to use tensors themselves in place of `torch.tensor()` of them."""
    here = facts.trace.sites[cut.call.site].span
    node, sources = facts.names.syntax.node(here), [facts.tensor(access.tensor) for access in cut.call.inputs]
    value = node.args[0] if isinstance(node, ast.Call) and node.args else None
    made = facts.tensor(cut.call.outputs[0].tensor) if cut.call.outputs else None
    edit, types = None, {each.dtype for each in (*sources, made) if each is not None}
    if made is not None and len(types) == 1 and isinstance(value, ast.Name | ast.Attribute | ast.List):
        if len(made.shape) == 1 and all(not each.shape for each in sources) and made.shape[0] == len(sources):
            edit = argument_itself(facts, here, as_list=True)
        elif len(sources) == 1 and sources[0].shape == made.shape and not isinstance(value, ast.List):
            edit = argument_itself(facts, here, as_list=False)
    text = "use the tensor itself; to join several, `torch.stack` keeps their history"
    return fix(text, *(edit,) if edit else (), place=here)


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
        edit = values_for_indices(facts, here)
        text = "use the values that it returns beside the indices: they have a gradient"
        return fix(text, *(edit,) if edit else (), place=here)
    position = expected_position(facts, cut)
    if position and here is not None:
        edits = (Edit(here, position),) if here.line == here.end_line else ()
        return fix(f"use the mean position, which has a gradient: `{position}`", *edits, place=here)
    if result_dtype(facts, cut) == "bool":
        return fix(f"use a smooth function of the values in place of {call}, such as `sigmoid()`", place=here)
    source = named(facts, cut.source, cut.call.index)
    return fix(f"compute the loss from {source} with operations that give floating point numbers", place=here)

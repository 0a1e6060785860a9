"""Names parameters whose gradients consist of zeros at each step, and what makes them so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.training.cancelled_biases import is_cancelled_bias
from tensorlens.analysis.training.changed_gradients import is_clip
from tensorlens.analysis.training.gradients.cancelled_means import cancelled_means
from tensorlens.analysis.training.gradients.constant_ratios import ConstantRatio, constant_ratios
from tensorlens.analysis.training.loss_calls import examined_passes
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.summed_terms import Loss, LossTerm, term_name
from tensorlens.analysis.training.term_shares import cancelling_terms
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written, op_text
from tensorlens.diagnostics.standing_out.gradients.constant_ratio import ratio_text
from tensorlens.diagnostics.standing_out.gradients.zeros_by_choice import is_of_choice, ratio_of
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these parameters, grouped by how often they had such a gradient, and by what makes it."""
    groups: dict[tuple[object, ...], list[ParameterRow]] = {}
    ratios = list(constant_ratios(training.facts)) if any(row.is_zero for row in training.rows) else []
    for row in training.rows:
        if row.is_zero and row.requires_grad:
            calls, changed = _cause(training, row)
            if changed is not None and _is_meant(training, changed):
                continue
            if changed is None and is_cancelled_bias(training, row, calls):
                continue
            if changed is None and is_of_choice(training, row, calls, ratios):
                continue
            sites = tuple(dict.fromkeys(call.site for call in (*calls, *([] if changed is None else [changed]))))
            cancelled = None if sites else _cancelled(training, row.tensor, ratios)
            groups.setdefault((sites, cancelled, _when(row)), []).append(row)
    for rows in groups.values():
        yield _sentence(training, rows, ratios)


def _cause(training: MeasuredTraining, row: ParameterRow) -> tuple[list[Call], Call | None]:
    """Returns the calls that passed only zeros on to a parameter, or else the one that changed its gradient."""
    calls = _calls(training, row.tensor)
    return calls, None if calls else _changed(training, row)


def _is_meant(training: MeasuredTraining, changed: Call) -> bool:
    """Returns whether a statement changes the gradient of one attribute or item, as `model.head.bias.grad.zero_()`."""
    span = training.facts.span(changed.site)
    statement = None if span is None else statement_around(training.facts, span)
    if isinstance(statement, ast.Assign):
        written: ast.AST = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        written = statement.target
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        given = statement.value.args[:1] if changed.op.startswith("nn.init.") else []
        written = given[0] if given else statement.value.func
    else:
        return False
    while isinstance(written, (ast.Attribute, ast.Subscript)) and not _is_gradient(written):
        written = written.value
    return _is_gradient(written)


def _is_gradient(node: ast.AST) -> bool:
    """Returns whether a node is the gradient of an attribute or an item."""
    if not isinstance(node, ast.Attribute) or node.attr != "grad":
        return False
    return isinstance(node.value, (ast.Attribute, ast.Subscript))


def _when(row: ParameterRow) -> str:
    """Says how often the gradient was measured: a step that finds none does not count."""
    assert row.statistics is not None
    number, what = row.statistics.filled, "step" if row.is_stepped else "backward pass"
    where = "at" if row.is_stepped else "after"
    if number == 1:
        return f"{where} the only {what} with a gradient"
    which = "" if number == row.statistics.rounds else " with a gradient"
    return f"{where} each of {number:,} {what}{'s' if row.is_stepped else 'es'}{which}"


def _changed(training: MeasuredTraining, row: ParameterRow) -> Call | None:
    """Finds the call that changed the gradient between a backward pass and the step that found zeros."""
    for step in training.training.steps:
        gradients = dict(zip(step.parameters, step.gradients, strict=True))
        if gradients.get(row.tensor) is not None:
            last = training.training.last_moment(row.tensor, step.index, "fill", "clear", "touch")
            while last is not None and last.kind == "touch" and is_clip(training, last.event.site or 0):
                last = training.training.last_moment(row.tensor, last.index, "fill", "clear", "touch")
            if last is not None and last.kind != "fill" and isinstance(last.event, Call):
                return last.event
    return None


def _calls(training: MeasuredTraining, leaf: int) -> list[Call]:
    """Returns the calls that made the nodes which passed only zeros on to a leaf."""
    facts = training.facts
    zeroed = (each for each in facts.trace.inspection.zeroed if each.tensor == leaf)
    found = (facts.call_of_node(each.sequence, each.index + 1) for each in zeroed)
    return [call for call in found if call is not None]


def _used_passes(training: MeasuredTraining, leaf: int) -> set[int | None]:
    """Returns the lines of the last passes before each step of a parameter."""
    timeline = training.training
    steps = [step for step in timeline.steps if leaf in step.parameters]
    fills = [timeline.last_moment(leaf, step.index, "fill") for step in steps]
    return {None if fill is None else fill.event.site for fill in fills}


def _sentence(training: MeasuredTraining, rows: list[ParameterRow], ratios: list[ConstantRatio]) -> StandingOut:
    facts = training.facts
    whose = "the gradient" if len(rows) == 1 else "each gradient"
    text = f"{whose} of {listed(rows)} is exactly zero {_when(rows[0])}"
    calls, changed = _cause(training, rows[0])
    if changed is not None:
        text += f": {as_written(facts, changed)} changes it before the step"
        return stands_out(text, facts.label("modified_here", changed.site, "changed here", changed.index))
    cancelling = None if calls else _terms(training, rows[0].tensor)
    if cancelling is not None:
        loss, terms = cancelling
        names = [f"`{term_name(facts, term.terms[-1])}`" for term in terms]
        text += f": the gradients of {', '.join(names[:-1])} and {names[-1]} cancel"
        return stands_out(text, facts.label("needed_here", loss.site, "backward"))
    drawn = None if calls else _drawn(training, rows[0].tensor)
    if drawn is not None:
        taken, added = drawn
        text += f": {as_written(facts, taken)} subtracts what {as_written(facts, added)} has added, with its graph"
        label = facts.label("graph_cut_here", taken.site, "the gradients cancel", taken.index)
        return stands_out(text, label, facts.label("value_made_here", added.site, "added here", added.index))
    ratio = None if calls else ratio_of(training, rows[0].tensor, ratios)
    if ratio is not None:
        label = facts.label("graph_cut_here", ratio.call.site, "does not depend on its input", ratio.call.index)
        return stands_out(f"{text}: {ratio_text(facts, ratio)}", label)
    if not calls:
        made = facts.first_use(rows[0].tensor)
        return stands_out(text, None if made is None else facts.label("leaf_made_here", made.site, "made here"))
    call = calls[0]
    shape = facts.tensor(call.outputs[0].tensor).shape if call.outputs else ()
    text += f": {op_text(call.op)} passes only zeros on"
    if _is_softmax(call) and 1 in shape:
        text += f", over a result of shape {tuple(shape)}"
    others = [facts.label("graph_cut_here", each.site, as_written(facts, each)) for each in calls[1:]]
    return stands_out(text, facts.label("graph_cut_here", call.site, "zeroed here", call.index), *others)


def _cancelled(training: MeasuredTraining, leaf: int, ratios: list[ConstantRatio]) -> tuple[int, ...]:
    """Returns the lines whose gradients cancel in a leaf, which are the reason why it is zero."""
    terms, drawn = _terms(training, leaf), _drawn(training, leaf)
    if terms is not None:
        return (terms[0].site, *(term.terms[-1].added.site for term in terms[1]))
    if drawn is not None:
        return tuple(call.site for call in drawn)
    ratio = ratio_of(training, leaf, ratios)
    return () if ratio is None else (ratio.call.site,)


def _terms(training: MeasuredTraining, leaf: int) -> tuple[Loss, tuple[LossTerm, ...]] | None:
    """Returns the loss of all passes of a parameter, and the terms of it whose gradients cancel there."""
    found = cancelling_terms(training, leaf)
    return found if found is not None and _used_passes(training, leaf) == {found[0].site} else None


def _drawn(training: MeasuredTraining, leaf: int) -> tuple[Call, Call] | None:
    """Returns the calls that take the location off a sample, and that have added it, if all passes of a parameter go
    through such calls."""
    used, callbacks = _used_passes(training, leaf), training.facts.trace.callbacks
    if any(each.kind == "tensor hook" and each.target == leaf for each in callbacks.registrations):
        return None  # the hook may make the zeros
    for backward in examined_passes(training.facts):
        if backward.site in used and any(change.tensor == leaf for change in backward.gradients):
            pairs = cancelled_means(training.facts, backward, leaf) if len(used) == 1 else ()
            return next(iter(pairs), None)
    return None


def _is_softmax(call: Call) -> bool:
    return "softmax" in call.op

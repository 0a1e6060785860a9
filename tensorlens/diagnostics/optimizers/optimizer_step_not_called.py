"""Finds the cause of `optimizer-step-not-called`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry, graph_leaves
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.analysis.training.timeline import GRAD_READ, Training, training_of
from tensorlens.diagnostics.shared.edits.scopes import is_visible
from tensorlens.diagnostics.shared.edits.statements import inserted_after
from tensorlens.diagnostics.shared.optimizers import made_name
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Backward, Call, Span
from tensorlens.records.report import Diagnostic, Edit, Fix

CODE = "optimizer-step-not-called"
LAST = 20  # numbers read from torch that are followed back
FEWEST = 3  # backward passes: fewer may be there to look at the gradients


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    if facts.trace.script.outcome not in ("ok", "exit") or training.is_hidden:
        return
    for made in facts.calls:
        if not made.op.startswith("optim.") or made.op.endswith(".add_param_group"):
            continue
        parameters = {access.tensor for access in made.inputs}
        passes = [b for b in facts.backwards if b.index > made.index and parameters & {c.tensor for c in b.gradients}]
        if len(passes) >= FEWEST and not _any_changed(training, parameters) and not _scaled(facts, parameters):
            yield _report(training, made, passes)


def _any_changed(training: Training, parameters: set[int]) -> bool:
    """Returns whether an optimizer stepped one of the parameters, or something else changed one."""
    return bool(parameters & training.stepped) or any(training.is_updated(number) for number in parameters)


def _scaled(facts: TraceIndex, parameters: set[int]) -> bool:
    """Returns whether a `GradScaler` makes the steps: it skips a step if a gradient overflowed."""
    calls = (call for call in facts.calls if call.op == "GradScaler.step")
    return any(parameters & {access.tensor for access in call.inputs} for call in calls)


def _is_looked_at(training: Training, parameters: set[int]) -> bool:
    """Returns whether the script reads the gradients, or a number computed from them, such as their norm."""
    if training.gradient_read & parameters:
        return True
    facts = training.facts
    gradients = {number for number, leaf in training.gradient_of.items() if leaf in parameters}
    leaving = [call for call in facts.calls if call.op in OPS_LEAVING_TORCH and call.inputs][-LAST:]
    above = (inner for call in leaving for _, inner in ancestry(facts, call.inputs[0].tensor, call.index))
    return any(access.tensor in gradients for inner in above for access in inner.inputs)


def _is_for_another(training: Training, parameters: set[int], passes: list[Backward]) -> bool:
    """Returns whether the script used each pass for other leaves, and the way to these leads through the parameters.

    An optimizer stepped the other leaves, or a line read their gradients. Then the optimizer may be there for another
    phase, as that of a critic is while the generator trains.
    """
    facts, steps = training.facts, training.steps
    reads = {call.index: call.inputs[0].tensor for call in facts.calls if call.op == GRAD_READ and call.inputs}
    ends = [b.index for b in passes[1:]] + [facts.events[-1].index + 1]
    for backward, end in zip(passes, ends, strict=True):
        stepped = {number for s in steps if backward.index < s.index < end for number in s.parameters}
        read = {number for at, number in reads.items() if backward.index < at < end} & training.gradient_read
        used = {change.tensor for change in backward.gradients} & (stepped | read)
        if not used or not _lead_through(facts, backward, parameters, used):
            return False
    return True


def _lead_through(facts: TraceIndex, backward: Backward, parameters: set[int], used: set[int]) -> bool:
    """Returns whether one of the parameters is combined with a value that was computed from a used leaf."""
    for _, call in ancestry(facts, backward.roots[0].tensor, backward.index):
        inputs = {access.tensor for access in call.inputs}
        if inputs & parameters:
            others = inputs - parameters
            if others & used or any(used & graph_leaves(facts, number, call.index) for number in others):
                return True
    return False


def _report(training: Training, made: Call, passes: list[Backward]) -> Diagnostic:
    facts, last = training.facts, passes[-1]
    parameters = {access.tensor for access in made.inputs}
    optimizer = made_name(facts, made)
    fed = parameters & {change.tensor for change in last.gradients}
    filled = "its parameter" if len(parameters) == 1 else f"{len(fed)} of its {len(parameters)} parameters"
    clears = [training.last_moment(number, last.index, "clear") for number in sorted(fed)]
    cleared = next((moment for moment in clears if moment is not None), None)
    may_be_meant = _skips_training(training, optimizer, made) or _is_looked_at(training, parameters)
    may_be_meant = may_be_meant or _is_for_another(training, parameters, passes)
    return finding(
        CODE,
        "note" if may_be_meant else "warning",
        f"`{optimizer}.step()` never ran: {len(passes)} backward passes changed none of its parameters",
        "backward only computes gradients; a parameter changes when an optimizer makes a step",
        [
            facts.label("optimizer_made_here", made.site, "no `step()` of this optimizer ran"),
            facts.label("needed_here", last.site, f"gives {filled} a gradient"),
            None if cleared is None else facts.label("cleared_here", cleared.event.site, "clears the gradients unused"),
        ],
        fixes=((_if_meant if may_be_meant else _calling)(training, made, optimizer, last),),
        evidence={"passes": len(passes), "parameters": len(parameters)},
    )


def _if_meant(training: Training, made: Call, optimizer: str, last: Backward) -> Fix:
    """Suggests the missing call where the program may not want one. A call below a condition is not written again: the
    condition may keep NaN out of the parameters."""
    facts, text = training.facts, "if they are to be trained, "
    written = _written_call(training, optimizer, made)
    if written is None:
        return fix(f"{text}call `{optimizer}.step()` after this line", place=facts.span(last.site))
    line = f"{text}`{optimizer}.step()` in this line has to run: check the condition above it"
    return fix(line, place=facts.span_of(written, facts.trace.sites[made.site].span.file))


def _calling(training: Training, made: Call, optimizer: str, last: Backward) -> Fix:
    """Suggests the missing call: where its name is without parentheses, else below the lines that make the gradients.

    Below a backward pass a line may still change the gradients, as clipping does: the call goes below the last of them.
    """
    facts, text = training.facts, f"call `{optimizer}.step()`, with parentheses"
    named = _named_without_call(facts, optimizer, made)
    if named is not None:
        return fix(
            text, Edit(Span(named.file, named.end_line, named.end_column, named.end_line, named.end_column), "()")
        )
    written = _written_call(training, optimizer, made)
    if written is not None:
        line = f"`{optimizer}.step()` in this line did not run: check the condition above it"
        return fix(line, place=facts.span_of(written, facts.trace.sites[made.site].span.file))
    site = _last_change(training, last)
    place = facts.span(site)
    if _adds_up(training, {access.tensor for access in made.inputs}, last):
        return fix(f"{text}, after the last pass before the gradients are cleared: they add up", place=place)
    edit, is_name = None, optimizer != made.op.rpartition(".")[2]
    if place is not None and is_name and is_visible(facts, optimizer, made.site, site):
        edit = inserted_after(facts, place.file, place.line, f"{optimizer}.step()")
    return fix(f"{text}, after this line", *(() if edit is None else (edit,)), place=place)


def _adds_up(training: Training, parameters: set[int], last: Backward) -> bool:
    """Returns whether the line of a pass ran several times between two places that clear the gradients."""
    for number in parameters:
        cleared, passes = False, 0
        for moment in training.moments.get(number, ()):
            if moment.kind == "clear":
                cleared, passes = True, 0
            elif moment.kind == "fill" and moment.event.site == last.site:
                passes += 1
            if cleared and passes > 1:
                return True
    return False


def _named_without_call(facts: TraceIndex, optimizer: str, made: Call) -> Span | None:
    """Finds the statement `optimizer.step` in the file that made the optimizer, if it is the only one."""
    file = facts.trace.sites[made.site].span.file
    found = [
        n for n in ast.walk(facts.tree(file)) if isinstance(n, ast.Expr) and plain_name(n.value) == f"{optimizer}.step"
    ]
    return facts.span_of(found[0], file) if len(found) == 1 else None


def _written_call(training: Training, optimizer: str, made: Call) -> ast.Call | None:
    """Finds the call of `step()` below a condition in the file that made the optimizer, which no step has reached."""
    facts = training.facts
    file = facts.trace.sites[made.site].span.file
    spans = [facts.span(step.site) for step in training.steps]
    ran = {span.line for span in spans if span is not None and span.file == file}
    conditions = (node for node in ast.walk(facts.tree(file)) if isinstance(node, ast.If))
    calls = (node for top in conditions for node in ast.walk(top) if isinstance(node, ast.Call))
    found = {c.lineno: c for c in calls if plain_name(c.func) == f"{optimizer}.step" and c.lineno not in ran}
    return found.popitem()[1] if len(found) == 1 else None


def _skips_training(training: Training, optimizer: str, made: Call) -> bool:
    """Returns whether no optimizer stepped, and the script has a call of `step()` that this run did not reach.

    The script decides there whether to train.
    """
    facts = training.facts
    if training.steps:
        return False
    calls = (
        node for node in ast.walk(facts.tree(facts.trace.sites[made.site].span.file)) if isinstance(node, ast.Call)
    )
    return any(plain_name(call.func) == f"{optimizer}.step" for call in calls)


def _last_change(training: Training, last: Backward) -> int:
    """Returns the line of the pass, or of the last call below it in its function that changed a gradient by hand."""
    facts, site = training.facts, last.site
    scope = facts.scope(site)
    for change in last.gradients:
        for moment in training.moments.get(change.tensor, ()):
            other = moment.event.site
            if moment.kind == "touch" and moment.index > last.index and other is not None:
                below = facts.trace.sites[other].span.line > facts.trace.sites[site].span.line
                site = other if below and facts.scope(other) == scope else site
    return site

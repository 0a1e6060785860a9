"""Finds the cause of `parameters-iterator-used-up`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.given_iterators import GivenIterator, iterator_at
from tensorlens.analysis.training.timeline import GRAD_SET, Training, training_of
from tensorlens.diagnostics.shared.edits.scopes import is_visible
from tensorlens.diagnostics.shared.optimizers import optimizer_label, optimizer_name
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Call
from tensorlens.records.observations import Step
from tensorlens.records.report import Diagnostic, Edit, Label
from tensorlens.records.source import text_of

CODE = "parameters-iterator-used-up"
_CLIP = "clip_grad_norm_"


@dataclass(frozen=True, slots=True)
class _UsedUp:
    """A call of `clip_grad_norm_` that got no parameter, and the optimizer step that used the gradients unclipped."""

    call: Call
    step: Step
    name: str  # the expression that both the clipping and the optimizer were given
    given: GivenIterator


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training, seen = training_of(facts), set[int]()
    for call in facts.calls:
        if call.op == "torch.tensor" and not call.inputs and call.site not in seen:
            seen.add(call.site)
            used_up = _used_up(training, call)
            if used_up is not None:
                yield _report(training, used_up)


def _used_up(training: Training, call: Call) -> _UsedUp | None:
    """Returns the facts if a call of `clip_grad_norm_` got none of the parameters that the next step updates.

    Clipping without a gradient makes a norm of 0 and does nothing else. The optimizer that was given the same name
    found gradients in its parameters, and no backward pass came between.
    """
    facts = training.facts
    name = _first_argument(facts, call.site, _CLIP)
    step = next((step for step in training.steps if step.index > call.index), None)
    made = None if step is None else training.optimizer_call(step)
    if name is None or step is None or made is None or _are_filled(facts, call.index, step.index):
        return None
    given, pairs = {access.tensor for access in made.inputs}, zip(step.parameters, step.gradients, strict=True)
    if not any(number in given and gradient is not None for number, gradient in pairs):
        return None
    kind = made.op.rpartition(".")[2]
    if _first_argument(facts, made.site, kind) != name or not is_visible(facts, name, made.site, call.site):
        return None
    source = iterator_at(facts, made.site, name)
    return None if source is None else _UsedUp(call, step, name, source)


def _first_argument(facts: TraceIndex, site: int, called: str) -> str | None:
    """Returns the name that a call of `called` is given first."""
    node = facts.names.syntax.node(facts.trace.sites[site].span)
    if not isinstance(node, ast.Call) or not node.args or not ast.unparse(node.func).endswith(called):
        return None
    return plain_name(node.args[0])


def _are_filled(facts: TraceIndex, start: int, end: int) -> bool:
    """Returns whether gradients come, by a backward pass or an assignment, between two events."""
    assigned = any(call.op == GRAD_SET and not call.within for call in facts.calls_between(start, end))
    return assigned or any(start < event.index < end for event in facts.backwards)


def _report(training: Training, used_up: _UsedUp) -> Diagnostic:
    facts, step, given = training.facts, used_up.step, used_up.given
    name = given.name or used_up.name
    optimizer = optimizer_name(training, step)
    span = facts.span_of(given.value, given.file)
    text = text_of(facts.trace.sources[span.file], span)
    made = f"(list{text})" if given.is_only_argument else f"list({text})"
    better = f"{given.name} = list(...)" if given.name else made
    return finding(
        CODE,
        "warning",
        f"no gradient was clipped: `{used_up.name}` gave `{_CLIP}` no parameter",
        f"an iterator yields its items once: `{optimizer}` took all of them when it was made",
        [
            Label("value_made_here", span, "this can be read once"),
            optimizer_label(training, step),
            facts.label("rejected_here", used_up.call.site, "finds nothing in it: the norm is 0"),
            facts.label("needed_here", step.site, "uses the gradients as they are"),
        ],
        fixes=(fix(f"make a list of it: `{better}`", Edit(span, made), place=span),),
        evidence={"parameters": name},
    )

"""Names hooks that change the gradient of a tensor for uses that came before the hook was registered."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_at
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.callbacks import Registration
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_TURNS = frozenset(("neg", "negative", "neg_"))
_BOUNDS = frozenset(("clamp", "clip", "hardtanh"))
_HOOK = "Tensor.register_hook"


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds hooks of a computed tensor that losses use by calls before and after the hook, each line once."""
    facts = training.facts
    callbacks = facts.trace.callbacks
    changing = {
        run.registration
        for run in callbacks.runs
        if any(value.tensor is not None and value.tensor not in run.given for value in run.values)
    }
    hooks = {
        (each.site, each.target): each
        for each in callbacks.registrations
        if each.kind == "tensor hook" and each.id in changing
    }
    registering = [call for call in facts.calls if call.op == _HOOK and call.inputs] if hooks else []
    seen = set[int]()
    for backward in examined_passes(facts) if registering else ():
        above = list(recorded_above(facts, backward))
        made = {access.tensor for call in above for access in call.outputs}
        for call in registering:
            number = call.inputs[0].tensor
            hook = hooks.get((call.site, number))
            if hook is None or number not in made or call.site in seen or call.index > backward.index:
                continue
            if not _reverses(facts, hook):
                continue  # a smaller or a bounded gradient may be meant for all uses
            uses = [use for use in above if number in {access.tensor for access in use.inputs}]
            earlier = [use for use in uses if use.index < call.index]
            if earlier and len(earlier) < len(uses):
                seen.add(call.site)
                yield _sentence(training, hook, call, min(earlier, key=lambda use: use.index))


def _reverses(facts: TraceIndex, hook: Registration) -> bool:
    """Returns whether the source of a hook changes the sign of the gradient."""
    span = facts.span(facts.trace.callbacks.functions[hook.function].defined)
    node = None if span is None else facts.names.syntax.node(span) or statement_at(facts, span.file, span.line)
    written = facts.node_at(hook.site)  # `register_hook(partial(scale, factor=-weight))`
    parts = [part for each in (node, written) if each is not None for part in ast.walk(each)]
    bounds = {part for each in parts if called_name(each).strip("_") in _BOUNDS for part in ast.walk(each)}
    return any(_is_minus(facts, each) for each in parts if each not in bounds)


def _is_minus(facts: TraceIndex, node: ast.AST) -> bool:
    if isinstance(node, ast.Name | ast.Attribute):
        number = written_number(facts, node)
        return number is not None and number < 0
    return (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)) or called_name(node) in _TURNS


def _sentence(training: MeasuredTraining, hook: Registration, call: Call, earlier: Call) -> StandingOut:
    facts = training.facts
    name = named(facts, call.inputs[0].tensor, call.index)
    function = facts.trace.callbacks.functions[hook.function]
    text = (
        f"a hook gives another gradient to all uses of {name}, also to {as_written(facts, earlier)}, which ran before"
    )
    return stands_out(
        f"{text} the hook was registered: it is no hook of one branch",
        facts.label("hook_registered_here", call.site, "the hook is registered here", call.index),
        facts.label("value_made_here", earlier.site, "used here before", earlier.index),
        facts.label("function_defined_here", function.defined, "the hook"),
    )

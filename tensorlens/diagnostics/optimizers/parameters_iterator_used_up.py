"""Finds the cause of `parameters-iterator-used-up`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.shared.edits.scopes import is_visible
from tensorlens.diagnostics.shared.optimizers import optimizer_label, optimizer_name
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Call
from tensorlens.records.observations import Step
from tensorlens.records.report import Diagnostic, Edit, Label
from tensorlens.records.source import text_of

CODE = "parameters-iterator-used-up"
_CLIP = "clip_grad_norm_"
_CONTAINERS = ("list", "tuple", "set", "dict", "sorted")


@dataclass(frozen=True, slots=True)
class _Given:
    """An iterator as the source writes it."""

    file: str
    value: ast.expr
    name: str  # that it is assigned to; empty if a call takes it as an argument


@dataclass(frozen=True, slots=True)
class _UsedUp:
    """A call of `clip_grad_norm_` that got no parameter, and the optimizer step that used the gradients unclipped."""

    call: Call
    step: Step
    name: str  # the expression that both the clipping and the optimizer were given
    given: _Given


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
    if name is None or step is None or made is None or _has_backward(facts, call.index, step.index):
        return None
    given, pairs = {access.tensor for access in made.inputs}, zip(step.parameters, step.gradients, strict=True)
    if not any(number in given and gradient is not None for number, gradient in pairs):
        return None
    kind = made.op.rpartition(".")[2]
    if _first_argument(facts, made.site, kind) != name or not is_visible(facts, name, made.site, call.site):
        return None
    source = _given(facts, made.site, name)
    return None if source is None or not _can_be_iterator(source.value) else _UsedUp(call, step, name, source)


def _first_argument(facts: TraceIndex, site: int, called: str) -> str | None:
    """Returns the name that a call of `called` is given first."""
    node = facts.names.syntax.node(facts.trace.sites[site].span)
    if not isinstance(node, ast.Call) or not node.args or not ast.unparse(node.func).endswith(called):
        return None
    return plain_name(node.args[0])


def _has_backward(facts: TraceIndex, start: int, end: int) -> bool:
    return any(start < event.index < end for event in facts.backwards)


def _given(facts: TraceIndex, site: int, name: str) -> _Given | None:
    """Returns what a name at a site is, if that is one value that can be an iterator.

    Of an argument it is what one call of the function gives, if all other calls give a container.
    """
    file = facts.trace.sites[site].span.file
    function = function_around(facts, file, facts.trace.sites[site].span.line)
    if function is None or name not in _arguments(function):
        return _only_value(facts, file, name)
    if any(_stores(node, name) for node in ast.walk(function)):
        return None
    values = [_argument(function, call, name) for call in _calls_of(facts.tree(file), function.name)]
    known = [None if value is None else _resolved(facts, file, value) for value in values]
    found = [each for each in known if each is not None and _can_be_iterator(each.value)]
    is_sure = all(each is not None and (each in found or _is_container(each.value)) for each in known)
    return found[0] if len(found) == 1 and is_sure else None


def _calls_of(tree: ast.Module, name: str) -> list[ast.Call]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [node for node in nodes if getattr(node.func, "id", getattr(node.func, "attr", "")) == name]


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]


def _argument(function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, name: str) -> ast.expr | None:
    """Returns what a call gives for an argument of a function, as the source writes it."""
    names = _arguments(function)
    place = names.index(name) - (names[0] == "self" and isinstance(call.func, ast.Attribute))
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    named = [each.value for each in call.keywords if each.arg == name]
    return next(iter((*named, *call.args[place : place + 1])), None)


def _resolved(facts: TraceIndex, file: str, value: ast.expr) -> _Given | None:
    name = plain_name(value)
    return _only_value(facts, file, name) if name else _Given(file, value, "")


def _only_value(facts: TraceIndex, file: str, name: str) -> _Given | None:
    """Returns what a file assigns to a name, if that is one value."""
    tree = facts.tree(file)
    stored = [node for node in ast.walk(tree) if _stores(node, name)]
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) and _assigns(node, name)]
    return _Given(file, values[0], name) if len(stored) == len(values) == 1 else None


def _can_be_iterator(value: ast.expr) -> bool:
    return isinstance(value, ast.Call | ast.GeneratorExp) and not _is_container(value)


def _is_container(value: ast.expr) -> bool:
    is_call = isinstance(value, ast.Call) and ast.unparse(value.func) in _CONTAINERS
    return is_call or isinstance(value, ast.List | ast.Tuple | ast.ListComp | ast.Set | ast.SetComp)


def _assigns(node: ast.Assign, name: str) -> bool:
    return len(node.targets) == 1 and plain_name(node.targets[0]) == name


def _stores(node: ast.AST, name: str) -> bool:
    is_name = isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load)
    return is_name and isinstance(node, ast.expr) and plain_name(node) == name


def _report(training: Training, used_up: _UsedUp) -> Diagnostic:
    facts, step, given = training.facts, used_up.step, used_up.given
    name = given.name or used_up.name
    optimizer = optimizer_name(training, step)
    span = facts.span_of(given.value, given.file)
    text = text_of(facts.trace.sources[span.file], span)
    better = f"{given.name} = list(...)" if given.name else f"list({text})"
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
        fixes=(fix(f"make a list of it: `{better}`", Edit(span, f"list({text})"), place=span),),
        evidence={"parameters": name},
    )

"""Names hooks that never run, and hooks that compute another value but do not return it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tensorlens.analysis.code_around import is_inside, statement_around
from tensorlens.analysis.naming.syntax import last_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.hook_functions import Definition, definition_of
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.callbacks import Registration, Run
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import text_of

_REPLACE = {
    "tensor hook": "the gradient",
    "forward hook": "the result of the module",
    "forward pre-hook": "the arguments of the module",
    "module backward hook": "the gradient",
    "module backward pre-hook": "the gradient",
}  # a hook of such a kind replaces it by what the hook returns, unless that is None
_PURE = frozenset(
    "abs add clamp clamp_max clamp_min clip clone detach div double exp float half lerp masked_fill mean mul neg norm "
    "rand_like randn_like relu round sigmoid sign sqrt square sub sum tanh to where zeros_like".split()
)
_OTHERS = frozenset("add clip double float half mean round sum to where".split())
"""Names of those that a set, a number or an array has as well, or that may return the tensor itself."""
_LIBRARIES = ("torch", "F", "math", "np")
_ACTING = ("save", "manual_seed", "seed", "set_rng_state")
_MIN_STEPS = 2
_OF_MODULE_CALLS = ("forward hook", "forward pre-hook")  # the trace has no runs of these
_OF_MODULE_PASSES = ("module backward hook", "module backward pre-hook")


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if not is_complete(facts.trace) or facts.trace.inspection.switches or training.training.is_hidden:
        return
    lines: dict[tuple[int, str], list[Registration]] = defaultdict(list)
    for each in facts.trace.callbacks.registrations:
        lines[each.site, each.kind].append(each)
    runs: dict[int, list[Run]] = defaultdict(list)
    for run in facts.trace.callbacks.runs:
        runs[run.registration].append(run)
    reported: set[int] = set()
    for (site, kind), registrations in lines.items():
        made = [run for each in registrations for run in runs[each.id]]
        number = registrations[0].function
        if kind not in _REPLACE or number in reported:
            continue
        reported.add(number)
        definition = definition_of(facts, number)
        if not made and kind in _OF_MODULE_CALLS and _may_be_called(facts, site):
            continue
        if not made and kind in _OF_MODULE_PASSES and not _is_trained(training, site):
            continue
        if not made and (kind not in _OF_MODULE_CALLS or _has_not_run(facts, definition)):
            yield from _never(training, site, registrations)
        elif definition is not None and all(run.ended == "returned" and not _has_value(run) for run in made):
            yield from _nothing(facts, registrations[0], definition)


def _has_value(run: Run) -> bool:
    return any(value.tensor is not None or value.type != "NoneType" for value in run.values)


def _may_be_called(facts: TraceIndex, site: int) -> bool:
    """Returns whether a branch that did not run calls the attribute that a hook is registered on, as a part of a
    network that a setting of the run leaves out."""
    node = facts.node_at(site)
    on = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    choices = (each for _, tree in facts.trees() for each in ast.walk(tree) if isinstance(each, ast.If | ast.IfExp))
    return isinstance(on, ast.Attribute) and any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == on.attr
        for choice in choices
        for each in ast.walk(choice)
    )


def _is_trained(training: MeasuredTraining, site: int) -> bool:
    """Returns whether a pass reaches parameters of the module that a hook is registered on, by its name: a loss may
    leave out one of several heads."""
    node = training.facts.node_at(site)
    on = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    name = last_name(on)
    rows = (row for row in training.rows if row.passes)
    return bool(name) and any(name in [part.strip(".") for part in row.owner] for row in rows)


def _has_not_run(facts: TraceIndex, definition: Definition | None) -> bool:
    """Returns whether a hook computes with its arguments in each of its runs, and the trace has no call inside it."""
    if definition is None:
        return False
    file, function = definition
    arguments = {each.arg for each in function.args.args}
    own = {node.name for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    body = function.body if isinstance(function.body, list) else [ast.Expr(function.body)]
    computes = any(_computes(node, arguments, own) for each in _first(body) for node in _unconditional(each))
    around = facts.span_of(function, file)
    spans = (facts.span(site) for site in {call.site for call in facts.calls})
    return computes and not any(span is not None and is_inside(span, around) for span in spans)


def _first(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements at the start of a hook that run in each of its runs, and that no call before may end."""
    for statement in body:
        if isinstance(statement, ast.Assign | ast.Return | ast.Expr) and statement.value is not None:
            yield statement
        nodes = list(ast.walk(statement))
        if any(isinstance(node, ast.stmt) and not isinstance(node, ast.Assign | ast.Expr) for node in nodes):
            return
        if any(isinstance(node, ast.Call | ast.Await) for node in nodes):
            return


def _computes(node: ast.AST, arguments: set[str], own: set[str]) -> bool:
    """Returns whether a part of a hook computes with a tensor: `output.abs()`, `inputs[0].norm()`.

    `own`: the names of the program's own methods, which an object of the program may have in place of a tensor's.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _PURE:
        return False
    is_torchs = ast.unparse(node.func.value) == "torch" and bool(node.args)
    if not is_torchs and node.func.attr in _OTHERS | own:
        return False
    root = node.args[0] if is_torchs else node.func.value
    while isinstance(root, ast.Subscript):
        root = root.value
    return isinstance(root, ast.Name) and root.id in arguments


def _unconditional(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yields the parts of a statement that each run of it computes."""
    waiting: list[ast.AST] = [statement]
    for node in waiting:
        yield node
        if not isinstance(node, ast.IfExp | ast.BoolOp | ast.Lambda | ast.comprehension | ast.ListComp | ast.DictComp):
            waiting += ast.iter_child_nodes(node)


def _never(training: MeasuredTraining, site: int, registrations: list[Registration]) -> Iterator[StandingOut]:
    """Finds a hook that was there for several steps of the run, and that nothing has called."""
    facts = training.facts
    label = facts.label("hook_registered_here", site, "registered here")
    if label is None or not all(_lasts(training, each) for each in registrations):
        return
    kind = registrations[0].kind.removeprefix("module ")
    text = f"the {kind} of {code_at(facts, site, kind)} never runs"
    is_reached = all(_is_filled(training, each) for each in registrations)  # so only its removal keeps it from running
    removed = _removed_at(facts, label.span) if kind == "tensor hook" and is_reached else None
    if removed is not None:
        code = text_of(facts.trace.sources[removed.file], removed)
        yield stands_out(f"{text}: `{code}` removes it before", label, Label("observed_here", removed, "removed here"))
        return
    if _is_removed(facts):
        return
    if "forward" in kind:
        text += ": its module is never called, or only by `.forward(...)`, which runs no hook"
    else:
        text += ": no backward pass gets to what it is registered on"
    yield stands_out(text, label)


def _lasts(training: MeasuredTraining, registration: Registration) -> bool:
    """Returns whether enough steps follow the place where a hook was registered."""
    runs = [call.index for call in training.facts.calls if call.site == registration.site]
    steps = training.facts.trace.inspection.steps
    begun = min(runs, default=0)
    return len([step for step in steps if step.index > begun]) >= _MIN_STEPS


def _is_filled(training: MeasuredTraining, registration: Registration) -> bool:
    """Returns whether a pass gives a gradient to the leaf that a hook was registered on, after the registration."""
    begun = min((call.index for call in training.facts.calls if call.site == registration.site), default=0)
    later = (each for each in training.facts.backwards if each.index > begun)
    return any(change.tensor == registration.target for each in later for change in each.gradients)


def _removed_at(facts: TraceIndex, registered: Span) -> Span | None:
    """Returns the only place that removes a hook, if the statement that registers it gives a name to its handle."""
    statement = statement_around(facts, registered)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    name = None if target is None else plain_name(target)
    removed = [
        facts.span_of(node, file)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "remove"
        and name is not None and plain_name(node.func.value) == name
    ]  # fmt: skip
    return removed[0] if len(removed) == 1 else None


def _is_removed(facts: TraceIndex) -> bool:
    """Returns whether the program can remove a hook."""
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return any(isinstance(node, ast.Attribute) and node.attr in ("remove", "clear", "pop") for node in nodes)


def _nothing(facts: TraceIndex, registration: Registration, definition: Definition) -> Iterator[StandingOut]:
    """Finds a statement of a hook that computes a value which the hook neither uses nor returns."""
    file, function = definition
    known = facts.trace.callbacks.functions[registration.function]
    if isinstance(function, ast.Lambda) or any(isinstance(node, ast.Return | ast.Yield) for node in ast.walk(function)):
        return
    for statement in function.body:
        if _is_unused(statement, function):
            code = facts.code_of(statement, file)
            does = "sets a variable" if isinstance(statement, ast.Assign) else "computes a value"
            yield stands_out(
                f"`{function.name}` returns nothing, so {_REPLACE[registration.kind]} stays as it is: `{code}` "
                f"{does} that no line reads",
                Label("observed_here", facts.span_of(statement, file), "not returned"),
                facts.label("hook_registered_here", registration.site, "registered here"),
                facts.label("function_defined_here", known.defined, "the hook"),
            )
            return


def _is_unused(statement: ast.stmt, definition: ast.FunctionDef) -> bool:
    """Returns whether a statement only computes with an argument of a function, and nothing reads the result."""
    arguments = {each.arg for each in definition.args.args}
    if isinstance(statement, ast.Expr):
        value, call = statement.value, statement.value
        if not isinstance(call, ast.Call) or not _is_pure(call) or not isinstance(call.func, ast.Attribute):
            return False
        return isinstance(call.func.value, ast.Name) and call.func.value.id in arguments
    if not isinstance(statement, ast.Assign) or not all(isinstance(each, ast.Name) for each in statement.targets):
        return False
    value = statement.value
    names = {each.id for each in statement.targets if isinstance(each, ast.Name)}
    read = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    is_pure = not isinstance(value, ast.Name) and read & arguments and all(_is_pure(call) for call in calls)
    if not names <= arguments and not is_pure:
        return False
    later = definition.body[definition.body.index(statement) + 1 :]
    loaded = (
        node.id
        for each in later
        for node in ast.walk(each)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    return names.isdisjoint(loaded) and not any(isinstance(each, ast.Nonlocal | ast.Global) for each in definition.body)


def _is_pure(call: ast.Call) -> bool:
    """Returns whether a call computes a value and changes nothing: a method of a tensor, or a function of torch."""
    function = call.func
    if not isinstance(function, ast.Attribute) or any(each.arg == "out" for each in call.keywords):
        return False
    is_torchs = isinstance(function.value, ast.Name) and function.value.id in _LIBRARIES
    return function.attr in _PURE or (is_torchs and not function.attr.endswith("_") and function.attr not in _ACTING)

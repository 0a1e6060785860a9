"""Names warm-ups that a division of whole numbers keeps at a learning rate of zero: `min(1, step // warmup)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, scope_around, statement_around, upwards
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.given_arguments import argument_of, calls_of
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.written_rates import WrittenRate, written_rates
from tensorlens.diagnostics.shared.learning_rate_text import group_name
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut

_FUNCTIONS = ast.FunctionDef | ast.Lambda
_MIN_STEPS, _MAX_DEPTH = 2, 6


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds rates that are 0 at the first steps and the highest at the next, which `//` computes as a share."""
    for group in training.groups:
        course = group.course
        zeros = next((place for place, rate in enumerate(course) if rate), 0)
        if group.is_shared or not zeros or course[zeros] < max(course) or group.rates[0] < 0:
            continue
        others = (each for each in training.groups if each.optimizer == group.optimizer)
        if any(each.course and each.course[0] > 0 for each in others):
            continue  # one group begins after another, as where layers are trained one by one
        width = -(-group.steps // len(course))  # a rate of the course is the mean of so many steps
        division = _division(training, group.optimizer) if zeros * width >= _MIN_STEPS else None
        if division is None:
            continue
        text = training.facts.names.syntax.text(division, 60)
        about = "" if width == 1 else "about "
        yield stands_out(
            f"the learning rate of {group_name(training, group)} is 0 at {about}the first {zeros * width} steps, and "
            f"{course[zeros]:g}, its highest, at the next: `{text}` is a whole number, and 0 until then",
            Label("observed_here", division, "divides whole numbers"),
            training.facts.label("optimizer_made_here", group.site, "made here"),
        )
        return


def _division(training: MeasuredTraining, optimizer: int) -> Span | None:
    """Returns the `//` in the function of the scheduler of an optimizer, or in one that sets the rates of groups."""
    facts = training.facts
    for each in facts.trace.inspection.schedules:
        node = facts.node_at(each.site)
        if each.optimizer == optimizer and isinstance(node, ast.Call) and each.site is not None:
            span = facts.span(each.site)
            given = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
            for function in (found for value in given for found in _functions(facts, value)) if span else ():
                if (found := _returned(function)) is not None:
                    return facts.span_of(found, _file_of(facts, function) or span.file) if span else None
    written = [(each, _value(facts, each)) for each in written_rates(facts)]
    if any(value is not None and _is_chosen(value) for _, value in written):
        return None
    for place, value in written:
        found = None if value is None else _set_to(facts, place, value)
        if found is not None:
            return facts.span_of(found, place.file)
    return None


def _functions(facts: TraceIndex, value: ast.expr) -> Iterator[ast.AST]:
    """Yields a lambda, or the functions of the program with the name of a value."""
    if isinstance(value, ast.Lambda):
        yield value
    name = last_name(value)
    for _, tree in facts.trees() if name else ():
        yield from (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == name)


def _file_of(facts: TraceIndex, function: ast.AST) -> str | None:
    return next((file for file, tree in facts.trees() if any(each is function for each in ast.walk(tree))), None)


def _returned(function: ast.AST) -> ast.expr | None:
    """Returns the `//` that a function of a scheduler, or one in it, returns a multiple of: of its argument."""
    for node in ast.walk(function):
        if not isinstance(node, _FUNCTIONS) or any(isinstance(each, _FUNCTIONS) for each in _inside(node)):
            continue
        returned = [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None]
        values = [node.body] if isinstance(node, ast.Lambda) else returned
        given = _derived(node, set(_given(node)))
        for value in () if any(map(_is_chosen, values)) else values:
            if (found := _quotient(node, value, given)) is not None:
                return found
    return None


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    return (each for each in ast.walk(node) if each is not node)


def _given(function: ast.FunctionDef | ast.Lambda) -> list[str]:
    """Returns the names of the arguments without a default."""
    placed = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return [each for each in placed[: len(placed) - len(function.args.defaults)] if each not in ("self", "cls")]


def _derived(scope: ast.AST, names: set[str]) -> set[str]:
    """Returns some names, and those that a function, or a script, computes by them."""
    for node in (each for each in ast.walk(scope) if isinstance(each, ast.Assign)):
        if _texts(node.value) & names:
            names = names | {ast.unparse(each) for each in node.targets}
    return names


def _texts(node: ast.expr) -> set[str]:
    return {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)}


def _is_chosen(value: ast.expr) -> bool:
    """Returns whether a rate is a written 0, or depends on a comparison: it may be 0 for another reason."""
    is_zero = isinstance(value, ast.Constant) and value.value == 0
    return is_zero or any(isinstance(each, ast.IfExp | ast.Compare | ast.BoolOp) for each in ast.walk(value))


def _value(facts: TraceIndex, place: WrittenRate) -> ast.expr | None:
    """Returns the rate that a line sets; None if the line computes it from the rate before, or in another way."""
    statement = statement_around(facts, place.span)
    if isinstance(statement, ast.Assign) and statement.targets == [place.node]:
        return statement.value
    keywords = place.node.keywords if isinstance(place.node, ast.Call) else []
    return next((each.value for each in keywords if each.arg == "lr"), None)


def _set_to(facts: TraceIndex, place: WrittenRate, value: ast.expr) -> ast.expr | None:
    """Returns the `//` of a number that changes with the steps, of which a line sets a multiple from the start on."""
    function = function_around(facts, place.file, place.span.line)
    scope = scope_around(facts, place.file, place.span.line)
    given = _counted(facts, place.file, scope)
    calls = [] if function is None else calls_of(facts, place.file, function) or []
    spans = [place.span, *(facts.span_of(call, place.file) for call in calls)]
    if not all(_is_from_start(facts, place.file, span) for span in spans):
        return None
    if isinstance(function, ast.FunctionDef):
        given = given.union(*(_given_counts(facts, place.file, function, call) for call in calls))
    return _quotient(scope, value, _derived(scope, given))


def _given_counts(facts: TraceIndex, file: str, function: ast.FunctionDef, call: ast.Call) -> set[str]:
    """Returns the arguments that a call gives a number that changes with the steps."""
    counted = _counted(facts, file, scope_around(facts, file, call.lineno))
    values = [(name, argument_of(facts, file, function, call, name)) for name in _given(function)]
    return {name for name, value in values if value is not None and _texts(value) & counted}


def _counted(facts: TraceIndex, file: str, scope: ast.AST) -> set[str]:
    """Returns the names that loops of a function, or script, set, and the counts of its file: `self.step += 1`."""
    loops = [each.target for each in ast.walk(scope) if isinstance(each, ast.For)]
    counts = [each.target for each in ast.walk(facts.tree(file)) if isinstance(each, ast.AugAssign)]
    names = {text for each in loops for text in _texts(each)}
    return _derived(scope, names | {ast.unparse(each) for each in counts})


def _is_from_start(facts: TraceIndex, file: str, span: Span) -> bool:
    """Returns whether a line is in no branch, or in one for small numbers only: `if step < warmup`."""
    statement = statement_around(facts, span)
    inner: ast.stmt | None = None
    for each in () if statement is None else upwards(facts, file, statement):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            break
        if isinstance(each, ast.If) and inner is not None:
            test = each.test
            is_small = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Lt | ast.LtE)
            if not is_small or inner not in each.body:
                return False
        inner = each
    return statement is not None


def _quotient(scope: ast.AST, value: ast.expr, given: set[str], deep: int = 0) -> ast.expr | None:
    """Returns a `//` with one of some names above it that is a factor of a value, so that this is 0 with it."""
    values: list[ast.expr] = []
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv):
        return value if _texts(value.left) & given else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        values = [value.left, value.right] if isinstance(value.op, ast.Mult) else [value.left]
    elif isinstance(value, ast.Call) and last_name(value.func) in ("min", "float", "int"):
        values = value.args
    elif isinstance(value, ast.Call) and last_name(value.func) == "max":
        values = [each for each in value.args if not isinstance(each, ast.Constant)]
        is_least = all(each.value == 0 for each in value.args if isinstance(each, ast.Constant))
        values = values if len(values) == 1 and is_least else []
    elif isinstance(value, ast.Name):
        stores = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == value.id]
        made = [each.value for each in ast.walk(scope) if isinstance(each, ast.Assign)
                and [ast.unparse(one) for one in each.targets] == [value.id]]  # fmt: skip
        is_only = sum(isinstance(each.ctx, ast.Store) for each in stores) == len(made) == 1
        values = made if is_only and not _is_chosen(made[0]) else []
    found = (_quotient(scope, each, given, deep + 1) for each in values) if deep < _MAX_DEPTH else iter(())
    return next((each for each in found if each is not None), None)

"""Names warm-ups that a division of whole numbers keeps at a learning rate of zero: `min(1, step // warmup)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, method_of, scope_around, statement_around
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.given_arguments import argument_of, calls_of
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.rates_and_schedules.whole_quotients import (
    RateScope,
    derived,
    is_chosen,
    is_from_start,
    returned_quotient,
    texts_in,
    whole_quotient,
)
from tensorlens.analysis.training.written_rates import WrittenRate, written_rates
from tensorlens.diagnostics.shared.learning_rate_text import group_name
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut

_FUNCTIONS = ast.FunctionDef | ast.Lambda
_MIN_STEPS = 2
_OWN_COUNTS = "self.last_epoch", "self._step_count"  # of a scheduler


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds rates that are 0 at the first steps and the highest at the next, which `//` computes as a share."""
    for group in training.groups:
        course = group.course
        zeros = next((place for place, rate in enumerate(course) if rate), 0)
        width = -(-group.steps // len(course)) if course else 1  # a rate of the course is the mean of so many steps
        next_to = course[zeros : zeros + (1 if width == 1 else 2)]  # the first may be a mean of both
        if group.is_shared or not zeros or max(next_to) < max(course) or group.rates[0] < 0:
            continue
        if any(each.course and each.course[0] > 0 and each.turns[0] <= group.turns[1] for each in training.groups):
            continue  # a group, or optimizer, begins after another, as where layers are trained one by one
        division = _division(training, group.optimizer) if zeros * width >= _MIN_STEPS else None
        if division is None:
            continue
        text = training.facts.names.syntax.text(division, 60)
        about, highest = ("", max(next_to)) if width == 1 else ("about ", group.rates[1])
        yield stands_out(
            f"the learning rate of {group_name(training, group)} is 0 at {about}the first {zeros * width} steps, and "
            f"{highest:g}, its highest, at the next: `{text}` is a whole number, and 0 until then",
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
            functions = [*_methods(facts, each.name), *(found for value in given for found in _functions(facts, value))]
            for function in functions if span else ():
                file = _file_of(facts, function) or (span.file if span else "")
                if (found := _returned(facts, file, function)) is not None:
                    return found
    written = [(each, value) for each in written_rates(facts) if (value := _value(facts, each)) is not None]
    found_in = [(value, _set_to(facts, place, value)) for place, value in written]
    if any(is_chosen(value) and found is None for value, found in found_in):
        return None
    return next((found for _, found in found_in if found is not None), None)


def _methods(facts: TraceIndex, name: str) -> Iterator[ast.AST]:
    """Yields the method that computes the rates of a scheduler of the program."""
    for _, tree in facts.trees():
        for each in ast.walk(tree):
            method = method_of(each, "get_lr") if isinstance(each, ast.ClassDef) and each.name == name else None
            if method is not None:
                yield method


def _functions(facts: TraceIndex, value: ast.expr) -> Iterator[ast.AST]:
    """Yields a lambda, or the functions of the program with the name of a value."""
    if isinstance(value, ast.Lambda):
        yield value
    name = last_name(value)
    for _, tree in facts.trees() if name else ():
        yield from (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == name)


def _file_of(facts: TraceIndex, function: ast.AST) -> str | None:
    return next((file for file, tree in facts.trees() if any(each is function for each in ast.walk(tree))), None)


def _returned(facts: TraceIndex, file: str, function: ast.AST) -> Span | None:
    """Returns the `//` that a function of a scheduler, or one in it, returns a multiple of: of its argument."""
    for node in ast.walk(function):
        if not isinstance(node, _FUNCTIONS) or any(isinstance(each, _FUNCTIONS) for each in _inside(node)):
            continue
        given = frozenset(derived(node, {*_given(node), *_OWN_COUNTS}))
        place = RateScope(facts, file, node, given)
        found = whole_quotient(place, node.body) if isinstance(node, ast.Lambda) else returned_quotient(place)
        if found is not None:
            return facts.span_of(found, _file_of(facts, found) or file)
    return None


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    return (each for each in ast.walk(node) if each is not node)


def _given(function: ast.FunctionDef | ast.Lambda) -> list[str]:
    """Returns the names of the arguments without a default."""
    placed = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return [each for each in placed[: len(placed) - len(function.args.defaults)] if each not in ("self", "cls")]


def _value(facts: TraceIndex, place: WrittenRate) -> ast.expr | None:
    """Returns the rate that a line sets; None if the line computes it from the rate before, or in another way."""
    statement = statement_around(facts, place.span)
    if isinstance(statement, ast.Assign) and statement.targets == [place.node]:
        return statement.value
    keywords = place.node.keywords if isinstance(place.node, ast.Call) else []
    return next((each.value for each in keywords if each.arg == "lr"), None)


def _set_to(facts: TraceIndex, place: WrittenRate, value: ast.expr) -> Span | None:
    """Returns the `//` of a number that changes with the steps, of which a line sets a multiple from the start on."""
    function = function_around(facts, place.file, place.span.line)
    scope = scope_around(facts, place.file, place.span.line)
    given = _counted(facts, place.file, scope)
    calls = [] if function is None else calls_of(facts, place.file, function) or []
    if isinstance(function, ast.FunctionDef):
        given = given.union(*(_given_counts(facts, place.file, function, call) for call in calls))
    own = RateScope(facts, place.file, scope, frozenset(derived(scope, given)))
    if not _is_run_first(own, place.span):
        return None
    for call in calls:
        around = scope_around(facts, place.file, call.lineno)
        outer = RateScope(facts, place.file, around, frozenset(_counted(facts, place.file, around)))
        if not _is_run_first(outer, facts.span_of(call, place.file)):
            return None
    found = whole_quotient(own, value)
    return None if found is None else facts.span_of(found, _file_of(facts, found) or place.file)


def _is_run_first(place: RateScope, span: Span) -> bool:
    statement = statement_around(place.facts, span)
    return statement is not None and is_from_start(place, statement)


def _given_counts(facts: TraceIndex, file: str, function: ast.FunctionDef, call: ast.Call) -> set[str]:
    """Returns the arguments that a call gives a number that changes with the steps."""
    counted = _counted(facts, file, scope_around(facts, file, call.lineno))
    values = [(name, argument_of(facts, file, function, call, name)) for name in _given(function)]
    return {name for name, value in values if value is not None and texts_in(value) & counted}


def _counted(facts: TraceIndex, file: str, scope: ast.AST) -> set[str]:
    """Returns the names that loops of a function, or script, set, and the counts of its file: `self.step += 1`."""
    loops = [each.target for each in ast.walk(scope) if isinstance(each, ast.For)]
    counts = [each.target for each in ast.walk(facts.tree(file)) if isinstance(each, ast.AugAssign) and _adds(each)]
    names = {text for each in loops for text in texts_in(each)}
    return derived(scope, names | {ast.unparse(each) for each in counts})


def _adds(node: ast.AugAssign) -> bool:
    return isinstance(node.op, ast.Add)

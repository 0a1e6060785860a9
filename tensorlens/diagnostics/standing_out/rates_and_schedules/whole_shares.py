"""Names warm-ups that a division of whole numbers keeps at a learning rate of zero: `min(1, step // warmup)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.learning_rate_text import group_name, lines_that_set_rates
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut

_MIN_STEPS = 2


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds rates that are 0 at the first steps and the highest at the next, which `//` computes as a share."""
    for group in training.groups:
        course = group.course
        zeros = next((place for place, rate in enumerate(course) if rate), 0)
        if group.is_shared or not zeros or course[zeros] < max(course) or group.rates[0] < 0:
            continue
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
                if (found := _quotient(function)) is not None:
                    return facts.span_of(found, _file_of(facts, function) or span.file) if span else None
    for line in lines_that_set_rates(facts):
        around = function_around(facts, line.file, line.line)
        found = None if around is None else _quotient(around)
        if found is not None:
            return facts.span_of(found, line.file)
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


def _quotient(function: ast.AST) -> ast.expr | None:
    """Returns a `//` that is a factor: `min(1, n // warmup)`, or one that is multiplied or returned; no exponent."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and last_name(node.func) in ("min", "max", "float"):
            values: list[ast.expr | None] = list(node.args)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            values = [node.left, node.right]
        elif isinstance(node, ast.Return):
            values = [node.value]
        elif isinstance(node, ast.Lambda):
            values = [node.body]
        else:
            continue
        for value in values:
            if isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv):
                return value
    return None

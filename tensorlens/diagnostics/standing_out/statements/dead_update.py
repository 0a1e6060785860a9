"""Names updates of kept state that only set a variable, as `mean = 0.9 * self.mean + 0.1 * batch_mean` does."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, statement_at
from tensorlens.analysis.timed_code import is_timed
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_MIN_RUNS = 2
_ALL = frozenset(("locals", "vars", "eval", "exec"))  # read variables without their names
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds sums in a function that read a tensor of the same shape again and again, and whose result nothing reads.

    One of what is added has a factor, as the parts of an average have. A sum of plain values, and one that is timed,
    may be there for its own sake.
    """
    facts = training.facts
    if not training.measured.steps:
        return
    sites: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if call.op in ("Tensor.add", "Tensor.sub", "torch.add", "torch.sub") and not call.within and not call.writes:
            sites[call.site].append(call)
    for calls in sites.values():
        name = _variable(facts, calls[0]) if len(calls) >= _MIN_RUNS else None
        if name is not None and _reads_one_tensor(facts, calls):
            span = facts.span(calls[0].site)
            statement = None if span is None else statement_at(facts, span.file, span.line)
            if span is not None and statement is not None:
                yield stands_out(
                    f"`{facts.code_of(statement, span.file)}` only sets the variable `{name}`, {len(calls):,} times, "
                    "and no line reads it then: what it is computed from stays as it is",
                    facts.label("observed_here", calls[0].site, "nothing reads the result", calls[0].index),
                )


def _variable(facts: TraceIndex, call: Call) -> str | None:
    """Returns the variable of a function that a sum is assigned to, if no line reads it afterwards."""
    span = facts.span(call.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    function = function_around(facts, span.file, span.line)
    is_sum = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub) and _has_factor(value)
    if (
        function is None
        or is_timed(facts, span)
        or not isinstance(target, ast.Name)
        or not is_sum
        or facts.span_of(value, span.file) != span
    ):
        return None
    return target.id if _is_dead(function, statement, target.id) else None


def _has_factor(value: ast.BinOp) -> bool:
    parts = [each for side in (value.left, value.right) for each in ast.walk(side)]
    names = {each.attr for each in parts if isinstance(each, ast.Attribute)}
    is_product = any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult | ast.Div) for each in parts)
    return is_product or bool(names & {"mul", "div", "multiply"})


def _is_dead(function: _Function, statement: ast.stmt, name: str) -> bool:
    """Returns whether no line of a function reads a variable after a statement, nor in a later round of a loop, nor in
    a function inside, which may run later."""
    loops = [
        loop
        for loop in ast.walk(function)
        if isinstance(loop, ast.For | ast.While) and any(statement is each for each in ast.walk(loop))
    ]
    nodes = list(ast.walk(function))
    if any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in nodes):
        return False
    reads = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    if any(node.id in _ALL for node in reads) or any(
        _reads_later(node, name) for node in nodes if node is not function
    ):
        return False
    for node in reads:
        around = [loop for loop in loops if loop.lineno <= node.lineno <= (loop.end_lineno or loop.lineno)]
        is_later = node.lineno > (statement.end_lineno or statement.lineno)
        if node.id == name and (
            is_later or (around and not any(_is_set_before(each, name, node.lineno) for each in around))
        ):
            return False
    return True


def _reads_later(node: ast.AST, name: str) -> bool:
    """Returns whether a part of a function is a function or a generator that reads a variable of the one around."""
    if not isinstance(node, _Function | ast.Lambda | ast.GeneratorExp):
        return False
    inside = list(ast.walk(node))
    own = {each.arg for each in inside if isinstance(each, ast.arg)}
    own |= {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return name not in own and any(isinstance(each, ast.Name) and each.id == name for each in inside)


def _is_set_before(loop: ast.For | ast.While, name: str, line: int) -> bool:
    """Returns whether each round of a loop sets a variable in a line of its own above another one."""
    targets = (
        {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        if isinstance(loop, ast.For)
        else set()
    )
    own = (each for each in loop.body if isinstance(each, ast.Assign) and each.lineno < line)
    return name in targets or any(isinstance(t, ast.Name) and t.id == name for each in own for t in each.targets)


def _reads_one_tensor(facts: TraceIndex, calls: list[Call]) -> bool:
    """Returns whether what is added was computed from one tensor of the same shape, or is it, in several runs."""
    shape = facts.tensor(calls[0].outputs[0].tensor).shape if calls[0].outputs else None
    seen: set[int] = set()
    for call in calls:
        read = {access.tensor for access in call.inputs}
        read |= {a.tensor for n in read for made in [facts.creator(n)] if made is not None and facts.same_line(
            made.site, call.site) for a in made.inputs}  # fmt: skip
        same = {number for number in read if facts.tensor(number).shape == shape}
        if same & seen:
            return True
        seen |= same
    return False

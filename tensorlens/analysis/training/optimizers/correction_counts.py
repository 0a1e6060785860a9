"""Finds counts that correct averages, as in `m / (1 - beta ** t)`, and that do not count the steps of these averages.

A loop over the parameters that counts in each round counts parameters. The place of a batch in its epoch begins anew
with each epoch, while the averages go on.
"""

from __future__ import annotations

import ast
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from tensorlens.analysis.code_around import function_around, scope_around, statement_around, upwards
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.first_rounds import rounds_of
from tensorlens.analysis.training.given_arguments import argument_of, arguments_of, calls_of
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.records.model import Span

_Function, _Import = ast.FunctionDef | ast.AsyncFunctionDef, ast.Import | ast.ImportFrom
_POWERS = frozenset(("pow", "float_power"))
_EMPTYING = frozenset("zero_ fill_ clear reset copy_ load_state_dict".split())
_READING = frozenset("train eval state_dict parameters named_parameters".split())
_REPEATING = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
_MIN_STEPS = 3
_MAX_NAMES = 8


@dataclass(frozen=True, slots=True)
class CorrectionCount:
    """A count that a correction takes for the number of steps."""

    count: Span  # `self.t += 1`, or `i + 1`
    count_text: str
    correction: Span  # `1 - beta ** self.t`
    correction_text: str
    parameters: int  # that a loop counts in a step; 0: the count begins anew with each epoch
    loop: Span  # over parameters, or over the batches of an epoch


def correction_counts(training: MeasuredTraining) -> Iterator[CorrectionCount]:
    facts = training.facts
    for file, tree in facts.trees() if len(facts.backwards) >= _MIN_STEPS else ():
        for node in ast.walk(tree):
            power = _corrected(node)
            if power is None or not isinstance(node, ast.expr) or not _is_of_average(tree, node):
                continue
            found = _of_parameters(training, file, node, power) or _of_epochs(facts, file, node, power)
            if found is not None:
                yield found


def _corrected(node: ast.AST) -> ast.expr | None:
    """Returns the exponent of `1 - beta ** t`."""
    if (
        not isinstance(node, ast.BinOp)
        or not isinstance(node.op, ast.Sub)
        or ast.unparse(node.left) not in ("1", "1.0")
    ):
        return None
    power = node.right
    if isinstance(power, ast.BinOp) and isinstance(power.op, ast.Pow):
        return power.right
    is_power = isinstance(power, ast.Call) and last_name(power.func) in _POWERS and len(power.args) > 1
    return power.args[1] if isinstance(power, ast.Call) and is_power else None


def _is_of_average(tree: ast.Module, correction: ast.expr) -> bool:
    """Returns whether a line takes `1 - beta` with the base of a correction, as an average does."""
    power = correction.right if isinstance(correction, ast.BinOp) else None
    base = power.left if isinstance(power, ast.BinOp) else power.args[0] if isinstance(power, ast.Call) else None
    return base is not None and any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and ast.unparse(node) == f"1 - {ast.unparse(base)}"
        for node in ast.walk(tree)
    )


def _loops(facts: TraceIndex, file: str, node: ast.expr) -> list[ast.For | ast.While]:
    """Returns the loops around an expression in its function, the innermost first."""
    statement = statement_around(facts, facts.span_of(node, file))
    around = () if statement is None else upwards(facts, file, statement)
    own = takewhile(lambda each: not isinstance(each, _Function), around)
    return [each for each in own if isinstance(each, ast.For | ast.While)]


def _of_parameters(
    training: MeasuredTraining, file: str, correction: ast.expr, power: ast.expr
) -> CorrectionCount | None:
    facts = training.facts
    loop = next(iter(_loops(facts, file, correction)), None)
    if not isinstance(loop, ast.For) or not isinstance(power, ast.Name | ast.Attribute | ast.Subscript):
        return None
    name, stored = ast.unparse(power), _stored_in(loop)
    stores = [each for each in ast.walk(loop) if isinstance(each, ast.stmt) and _stored(each) == name]
    if stored.count(name) != 1 or len(stores) != 1 or stores[0] not in loop.body or not _is_counted(stores[0]):
        return None
    parts = [each for each in ast.walk(power) if isinstance(each, ast.expr) and each is not power]
    if any(isinstance(each, ast.Call) or ast.unparse(each) in stored for each in parts):
        return None  # a count of each parameter
    number, site = _written_in(training, file, loop)
    if number < 2 or not _is_run_once(facts, file, loop, site):
        return None
    return _count(facts, file, (stores[0], correction), loop, number)


def _count(
    facts: TraceIndex, file: str, parts: tuple[ast.AST, ast.expr], loop: ast.For, number: int
) -> CorrectionCount:
    spans = [facts.span_of(each, file) for each in parts]
    texts = [ast.unparse(each) for each in parts]
    return CorrectionCount(spans[0], texts[0], spans[1], texts[1], number, facts.span_of(loop.iter, file))


def _stored_in(loop: ast.For) -> list[str]:
    """Returns the text of all names, attributes and items that a loop sets, those in tuples too."""
    kinds = ast.Name | ast.Attribute | ast.Subscript
    return [ast.unparse(each) for each in ast.walk(loop) if isinstance(each, kinds) and isinstance(each.ctx, ast.Store)]


def _stored(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return ast.unparse(statement.targets[0])
    return ast.unparse(statement.target) if isinstance(statement, ast.AugAssign | ast.AnnAssign) else ""


def _is_counted(statement: ast.stmt) -> bool:
    """Returns whether a statement adds 1: `t += 1`, or `t = t + 1`."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Add) and ast.unparse(statement.value) == "1"
    value = statement.value if isinstance(statement, ast.Assign) else None
    return value is not None and ast.unparse(value) == f"{_stored(statement)} + 1"


def _written_in(training: MeasuredTraining, file: str, loop: ast.For) -> tuple[int, int]:
    """Returns how many parameters a line of a loop writes to in a step, between two passes, and the site of that line.

    The number is 0 if it does so in few steps, or if one call or several lines do it for different parameters.
    """
    facts = training.facts
    storages = {memory: row.tensor for row in training.rows for memory in facts.storages_of(row.tensor)}
    passes = [each.index for each in facts.backwards]
    written = defaultdict[int, dict[int, set[int]]](dict)  # the number of the pass -> site -> parameters
    first, last = loop.body[0].lineno, loop.end_lineno or loop.lineno
    for call in facts.calls:
        span = facts.span(call.site) if call.writes else None
        if span is not None and span.file == file and first <= span.line <= last:
            memories = {facts.storage_of(write.tensor, call.index) for write in call.writes}
            found = {storages[each] for each in memories if each in storages}
            if len(found) > 1:
                return 0, 0
            written[bisect(passes, call.index)].setdefault(call.site, set()).update(found)
    steps = [max(each.items(), key=lambda item: len(item[1])) for each in written.values()]
    is_each = all(set[int]().union(*of.values()) == most for of, (_, most) in zip(written.values(), steps, strict=True))
    if len(steps) < _MIN_STEPS or not is_each:
        return 0, 0
    return min(len(most) for _, most in steps), steps[0][0]


def _is_run_once(facts: TraceIndex, file: str, loop: ast.For, site: int) -> bool:
    """Returns whether a loop runs once between two passes: it has none, and each loop around it and its callers has
    one, in which no second call may lead to it."""
    sites = {each.site for each in facts.backwards}
    spans = [facts.span(each) for one in sites for each in facts.call_chain(one)]
    lines = {(span.file, span.line) for span in spans if span is not None}
    called = ""
    if _holds(lines, file, loop):
        return False
    for each in facts.call_chain(site):
        span = facts.span(each)
        if span is None or each in sites:
            return False
        scope = scope_around(facts, span.file, span.line)
        loops = [node for node in ast.walk(scope) if isinstance(node, _REPEATING) and node is not loop]
        around = [node for node in loops if node.lineno <= span.line <= (node.end_lineno or 0)]
        region = min(around, key=lambda node: (node.end_lineno or 0) - node.lineno, default=scope)
        calls = [node for node in ast.walk(region) if isinstance(node, ast.Call) and last_name(node.func) == called]
        if called and len(calls) != 1:
            return False
        if around or _holds(lines, span.file, region):
            return _holds(lines, span.file, region)
        called = facts.trace.sites[each].function.rpartition(".")[2]
    return False


def _holds(lines: set[tuple[str, int]], file: str, region: ast.AST) -> bool:
    """Returns whether one of some lines is in a part of a file."""
    first, last = getattr(region, "lineno", 0), getattr(region, "end_lineno", None) or float("inf")
    return any(each == file and first <= line <= last for each, line in lines)


def _of_epochs(facts: TraceIndex, file: str, correction: ast.expr, power: ast.expr) -> CorrectionCount | None:
    """Returns a count that is the place of a batch in an epoch, where nothing begins the averages anew."""
    loops = _loops(facts, file, correction)
    function = function_around(facts, file, correction.lineno)
    names = {node.id for node in ast.walk(power) if isinstance(node, ast.Name)}
    inputs = _numerators(scope_around(facts, file, correction.lineno), correction)
    if not inputs:
        return None
    given = names & set(arguments_of(function)) if function is not None else set[str]()
    place, at = power, correction
    if function is not None and given and len(names) == 1 and isinstance(power, ast.Name):
        calls = calls_of(facts, file, function) or []
        value = argument_of(facts, file, function, calls[0], power.id) if len(calls) == 1 else None
        if value is None:
            return None
        place, at, loops = value, calls[0], _loops(facts, file, calls[0])
        inputs = {node.id for node in ast.walk(calls[0]) if isinstance(node, ast.Name)}
    counted = {node.id for node in ast.walk(place) if isinstance(node, ast.Name)}
    around = [each for each in loops if isinstance(each, ast.For) and counted & _places(each)]
    if len(counted) != 1 or len(around) != 1 or not _is_shifted(place):
        return None
    inner = around[0]
    outer = loops[loops.index(inner) + 1] if inner is not loops[-1] else None
    if not isinstance(outer, ast.For | ast.While) or not _goes_on(facts, file, (inner, outer), inputs):
        return None
    if not any(number > 1 for number in rounds_of(facts, file, outer)) and not _is_run_again(facts, file, inner):
        return None
    return _count(facts, file, (place if at is not correction else power, correction), inner, 0)


def _is_shifted(place: ast.expr) -> bool:
    """Returns whether an expression is a name, or a name and a whole number that is added."""
    if isinstance(place, ast.BinOp) and isinstance(place.op, ast.Add):
        return all(isinstance(each, ast.Name | ast.Constant) for each in (place.left, place.right))
    return isinstance(place, ast.Name)


def _places(loop: ast.For) -> set[str]:
    """Returns the name that counts the rounds of a loop, by `enumerate()` or `range()` with numbers alone."""
    value = loop.iter
    called = last_name(value.func) if isinstance(value, ast.Call) else ""
    if not isinstance(value, ast.Call) or called not in ("enumerate", "range", "trange"):
        return set()
    if called == "enumerate":
        starts = [*value.args[1:], *(each.value for each in value.keywords)]
        target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else None
    else:
        starts, target = value.args[:1] if len(value.args) > 1 else [], loop.target
    is_first = all(isinstance(each, ast.Constant) and each.value in (0, 1) for each in starts)
    return {target.id} if is_first and isinstance(target, ast.Name) and len(value.args) < 3 else set()


def _numerators(scope: ast.AST, correction: ast.expr) -> set[str]:
    """Returns the names of what a function, or a script, divides by a correction, and of what these are of."""
    targets = {ast.unparse(each.targets[0]) for each in ast.walk(scope) if isinstance(each, ast.Assign)
               and each.value is correction}  # fmt: skip
    found = set[str]()
    for each in ast.walk(scope):
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div):
            if each.right is correction or ast.unparse(each.right) in targets:
                found |= _roots(each.left)
    for _ in range(_MAX_NAMES):
        found |= {name for each in ast.walk(scope) for name in _above(each, found)}
    return found


def _above(node: ast.AST, names: set[str]) -> set[str]:
    """Returns the names of which a loop or an assignment takes one of some names."""
    if isinstance(node, ast.For) and _roots(node.target) & names:
        return _roots(node.iter)
    if isinstance(node, ast.Assign) and any(isinstance(each, ast.Name) and each.id in names for each in node.targets):
        return _roots(node.value)
    return set()


def _roots(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _goes_on(facts: TraceIndex, file: str, loops: tuple[ast.For, ast.For | ast.While], names: set[str]) -> bool:
    """Returns whether a name is set before the outer loop, or belongs to the object, and none of them is set, emptied
    or loaded in it, but in the inner loop, where no branch does so."""
    inner, outer = loops
    inside, nodes = set(ast.walk(inner)), ast.walk(facts.tree(file))
    names = names - {each.asname or each.name for node in nodes if isinstance(node, _Import) for each in node.names}
    branches = [part for each in inside if isinstance(each, ast.If) for part in ast.walk(each)]
    if any(_is_emptied(node, names) for node in branches):
        return False
    for node in (each for each in ast.walk(outer) if each not in inside and each is not outer):
        if _is_emptied(node, names) or (isinstance(node, ast.Call) and _may_empty(facts, node, names)):
            return False
        if any(_roots(each) & names for each in _targets(node)):
            return False
    return True


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.For | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) else []


def _is_emptied(node: ast.AST, names: set[str]) -> bool:
    """Returns whether a call empties or loads something, or a line sets one of some names without its value."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and last_name(node.func) in _EMPTYING
    return isinstance(node, ast.Assign) and any(_roots(each) & names - _roots(node.value) for each in node.targets)


def _may_empty(facts: TraceIndex, call: ast.Call, names: set[str]) -> bool:
    """Returns whether a call gets one of some names, is a method of it, or is of a function of the program with it."""
    called = last_name(call.func)
    if isinstance(call.func, ast.Attribute) and _roots(call.func) & names:
        return called not in _READING
    if any(isinstance(each, ast.Name) and each.id in names for each in call.args):
        return called not in ("len", "enumerate", "zip")
    functions = (each for _, tree in facts.trees() for each in ast.walk(tree) if isinstance(each, _Function))
    return any(isinstance(node, ast.Name) and node.id in names - {"self"}
               for each in functions if each.name == called for node in ast.walk(each))  # fmt: skip


def _is_run_again(facts: TraceIndex, file: str, loop: ast.For) -> bool:
    """Returns whether the head of a loop has run more than once, by the calls that it makes."""
    head = facts.span_of(loop.iter, file)
    sites = (site for site in facts.trace.sites if site.span.file == file and site.span.line == head.line)
    return any(facts.times_run(site.id, 0)[1] > 1 for site in sites if site.span.column >= head.column)

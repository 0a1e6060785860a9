"""Names sums over parameters or modules that stay zero, because the line that adds to them never runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensorlens.analysis.code_around import block_around, is_inside
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.tensor_calls import makes_tensor_call
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.statements.chosen_by_name import chooses, is_optional
from tensorlens.analysis.written_numbers import only_value
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut

_OVER = frozenset("children named_children modules named_modules parameters named_parameters".split())
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.Module
_Comprehension = ast.GeneratorExp | ast.ListComp
_Simple = ast.Expr | ast.Assign | ast.AugAssign | ast.Return | ast.AnnAssign


@dataclass(frozen=True, slots=True)
class _Empty:
    """A sum that stays zero."""

    name: str
    added: ast.AST
    test: ast.expr | None  # a condition that chooses what is added
    skips: bool  # where the condition holds
    over: ast.expr
    function: str = ""  # that would have made what is added, by `map()`


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if not is_complete(facts.trace) or facts.trace.inspection.switches or not training.measured.passes:
        return
    spans = [span for call_site in {call.site for call in facts.calls} if (span := facts.span(call_site)) is not None]
    for file, tree in facts.trees():
        scopes: list[_Scope] = [tree, *(node for node in ast.walk(tree) if isinstance(node, _Function))]
        for scope in scopes:
            for node in _own(scope):
                if isinstance(node, ast.For):
                    found = list(_of_loop(facts, file, (scope, node), spans))
                else:
                    found = list(_of_sum(facts, file, (scope, node), spans)) if isinstance(node, _Simple) else []
                yield from (_sentence(facts, file, each) for each in found if not is_optional(facts, each.test))


def _sentence(facts: TraceIndex, file: str, found: _Empty) -> StandingOut:
    line, over = facts.span_of(found.added, file), facts.code_of(found.over, file)
    holds = "each" if found.skips else "none"
    what = "there is nothing in" if found.test is None else f"`{facts.code_of(found.test, file)}` holds for {holds} of"
    adding = f"`{found.function}()`" if found.function else "the line that adds to it"
    return stands_out(
        f"`{found.name}` stays zero: {adding} never runs, because {what} `{over}`",
        Label("observed_here", line, "never runs"),
        Label("observed_here", facts.span_of(found.test or found.over, file), "keeps it from running"),
    )


def _of_loop(facts: TraceIndex, file: str, place: tuple[_Scope, ast.For], spans: list[Span]) -> Iterator[_Empty]:
    scope, loop = place
    over, chosen = _resolved(facts, loop.iter)
    if not _is_over_modules(over):
        return
    names = _parameters(over, loop.target)
    added = [node for node in ast.walk(loop) if isinstance(node, _Simple) and _name(node)]
    for name in {_name(node) for node in added}:
        adding = [node for node in added if _name(node) == name]
        others = [node for node in _own(scope) if isinstance(node, ast.AugAssign | ast.Assign) and _sets(node, name)]
        starts = [node for node in others if node not in adding]
        total = next((each for each in _sums(scope) if _is_named(each.args[0], name)), None)
        is_zero = [_is_zero(node.value) or (total is not None and _is_empty(node.value)) for node in starts]
        if not starts or not all(is_zero) or not all(_is_recorded(facts, file, each, names) for each in adding):
            continue
        ran = _ran(facts, file, adding, spans)
        choices = [node for node in ast.walk(loop) if isinstance(node, ast.If)]
        tests = [*chosen, *(each.test for each in choices)]
        is_chosen = len(tests) < 2 and all(map(_is_choice, choices)) and all(map(chooses, chosen))
        if not ran and is_chosen and _has_run(facts, file, place, spans):
            skips = any(isinstance(node, ast.Continue) for node in ast.walk(loop))
            is_list = total is not None and _is_empty(starts[0].value)
            shown = facts.code_of(total, file) if total is not None and is_list else name
            yield _Empty(shown, adding[0], tests[0] if tests else None, skips, over)


def _of_sum(facts: TraceIndex, file: str, place: tuple[_Scope, ast.stmt], spans: list[Span]) -> Iterator[_Empty]:
    """Yields the `sum()` of a statement whose terms a comprehension makes, if it never makes one."""
    scope, statement = place
    is_plain = not any(
        isinstance(node, ast.IfExp | ast.BoolOp) or (isinstance(node, ast.Lambda) and _sums(node))
        for node in _outside(statement)
    )
    for total in _sums(statement) if is_plain else ():
        terms = total.args[0]
        if isinstance(terms, ast.Name):
            terms = _only_assigned(scope, terms.id) or terms
        name, mapped = _mapped(terms)
        if isinstance(terms, _Comprehension) and len(terms.generators) == 1:
            target, iterated, ifs = terms.generators[0].target, terms.generators[0].iter, terms.generators[0].ifs
            added = terms.elt
        elif mapped is not None:
            (added, iterated), ifs, target = mapped, [], None
        else:
            continue
        over, chosen = _resolved(facts, iterated)
        tests = [*chosen, *ifs]
        if not _is_over_modules(over) or len(tests) > 1 or not all(map(chooses, tests)):
            continue
        around = facts.span_of(statement, file)
        has_run = any(is_inside(span, around) for span in spans) or _has_run(facts, file, place, spans)
        is_recorded = _is_recorded(facts, file, added, _parameters(over, target), name)
        if has_run and is_recorded and not _ran(facts, file, [added], spans, name):
            yield _Empty(facts.code_of(total, file), added, tests[0] if tests else None, False, over, name)


def _mapped(terms: ast.expr) -> tuple[str, tuple[ast.expr, ast.expr] | None]:
    """Returns the name of a function that `map()` calls, and what makes each term and what the terms are made of."""
    if not isinstance(terms, ast.Call) or called_name(terms) != "map" or len(terms.args) != 2 or terms.keywords:
        return "", None
    function, over = terms.args
    if isinstance(function, ast.Lambda):
        return "", (function.body, over)
    name = last_name(function)
    return name, (terms, over) if name else None


def _ran(facts: TraceIndex, file: str, nodes: Sequence[ast.AST], spans: list[Span], name: str = "") -> bool:
    """Returns whether one of these nodes has run, or a function of the script that they call."""
    places = [facts.span_of(node, file) for node in nodes]
    places += [facts.span_of(each, other) for node in nodes for other, each in _helpers(facts, node, name)]
    return any(is_inside(span, place) for span in spans for place in places)


def _helpers(facts: TraceIndex, node: ast.AST, name: str = "") -> list[tuple[str, _Function]]:
    """Returns the functions of the script with a name that a piece of source calls."""
    names = {name} if name else {called_name(each) for each in ast.walk(node) if isinstance(each, ast.Call)}
    nodes = ((file, each) for file, tree in facts.trees() for each in ast.walk(tree))
    return [(file, each) for file, each in nodes if isinstance(each, _Function) and each.name in names]


def _outside(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yields the nodes of a statement that are in no comprehension."""
    waiting: list[ast.AST] = [statement]
    for node in waiting:
        yield node
        if not isinstance(node, _Comprehension):
            waiting += ast.iter_child_nodes(node)


def _sums(node: ast.AST) -> list[ast.Call]:
    """Returns the calls of `sum()` in a piece of source that begin at zero."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)]
    found = [each for each in calls if called_name(each) == "sum" and each.args]
    return [each for each in found if all(map(_is_zero, [*each.args[1:], *(more.value for more in each.keywords)]))]


def _is_over_modules(over: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) and called_name(node) in _OVER for node in ast.walk(over))


def _resolved(facts: TraceIndex, over: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
    """Returns what a loop runs over, and the condition of a list that was made of it, as `[p for p in ... if ...]`."""
    name = last_name(over)
    made = only_value(facts, name) if name else over
    if isinstance(made, ast.Call) and called_name(made) in ("list", "tuple") and len(made.args) == 1:
        made = made.args[0]
    if isinstance(made, ast.Call) and called_name(made) == "filter" and isinstance(made.args[0], ast.Lambda):
        return made.args[1], [made.args[0].body]
    if (
        not isinstance(made, _Comprehension)
        or len(made.generators) > 1
        or not isinstance(made.elt, ast.Name | ast.Tuple)
    ):
        return over, []
    return made.generators[0].iter, made.generators[0].ifs


def _only_assigned(scope: _Scope, name: str) -> ast.expr | None:
    """Returns what a function assigns to a name in one place, if nothing but a `sum()` reads it."""
    nodes = list(_own(scope))
    values = [node.value for node in nodes if isinstance(node, ast.Assign) and _sets(node, name)]
    uses = sum(isinstance(node, ast.Name) and node.id == name for node in nodes)
    return values[0] if len(values) == 1 and uses == 2 else None


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_empty(value: ast.expr | None) -> bool:
    return isinstance(value, ast.List) and not value.elts


def _own(scope: _Scope) -> Iterator[ast.AST]:
    """Yields the nodes of a function or a file that are in no function inside it."""
    waiting: list[ast.AST] = list(scope.body)
    for node in waiting:
        yield node
        if not isinstance(node, _Function | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _name(node: _Simple) -> str:
    """Returns the variable that a statement adds to, as in `total += x`, `total = total + x` and `terms.append(x)`; ""
    if it does not."""
    if isinstance(node, ast.AugAssign):
        return node.target.id if isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name) else ""
    value = node.value
    if isinstance(node, ast.Expr):
        is_appended = (
            isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and called_name(value) == "append"
        )
        holder = value.func.value if is_appended else None  # type: ignore[union-attr]
        return holder.id if isinstance(holder, ast.Name) else ""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if not isinstance(target, ast.Name) or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return ""
    return target.id if isinstance(value.left, ast.Name) and value.left.id == target.id else ""


def _sets(node: ast.AugAssign | ast.Assign, name: str) -> bool:
    targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
    return any(isinstance(each, ast.Name) and each.id == name for target in targets for each in ast.walk(target))


def _is_zero(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return value.value == 0 and not isinstance(value.value, bool)
    is_zeros = isinstance(value, ast.Call) and called_name(value) in ("zeros", "tensor", "new_zeros")
    numbers = [node.value for node in ast.walk(value) if isinstance(node, ast.Constant)]
    return is_zeros and (called_name(value) != "tensor" or numbers[:1] in ([0], [0.0]))


def _parameters(over: ast.expr, target: ast.expr | None) -> frozenset[str]:
    """Returns the name that a loop over parameters gives to each."""
    last = target.elts[-1] if isinstance(target, ast.Tuple) and target.elts else target
    is_of_them = any(called_name(node) in ("parameters", "named_parameters") for node in ast.walk(over))
    return frozenset((last.id,)) if isinstance(last, ast.Name) and is_of_them else frozenset()


def _is_recorded(
    facts: TraceIndex, file: str, node: _Simple | ast.expr, parameters: frozenset[str], name: str = ""
) -> bool:
    """Returns whether a statement or an expression makes a call that the trace would have, itself or in a function of
    the script that it calls."""
    value = node if isinstance(node, ast.expr) else node.value or node
    if not name and any(makes_tensor_call(facts, part, file, parameters) for part in ast.walk(value)):
        return True
    helpers = _helpers(facts, value, name)
    return bool(helpers) and all(_records(facts, *each) for each in helpers)


def _records(facts: TraceIndex, file: str, function: _Function) -> bool:
    """Returns whether each run of a function makes a call that the trace would have."""
    for statement in function.body:
        if not isinstance(statement, _Simple):
            return False
        if any(makes_tensor_call(facts, each, file) for each in _outside(statement)):
            return True
    return False


def _is_choice(choice: ast.If) -> bool:
    """Returns whether a condition chooses by the type or the name of a module or parameter, or skips the others."""
    test = choice.test
    skips = len(choice.body) == 1 and isinstance(choice.body[0], ast.Continue)
    has_more = any(isinstance(node, ast.Continue | ast.Break | ast.Return) for node in ast.walk(choice))
    if choice.orelse or has_more != skips:
        return False
    if skips and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return chooses(test)


def _has_run(facts: TraceIndex, file: str, place: tuple[_Scope, ast.stmt], spans: list[Span]) -> bool:
    """Returns whether the trace shows that a loop has run: calls beside it, or in a statement that calls its function
    where no condition can keep it from running."""
    scope, loop = place
    beside = (each for each in block_around(facts, file, loop) if each is not loop and isinstance(each, _Simple))
    rest = [facts.span_of(each, file) for each in beside]
    if any(is_inside(span, each) for span in spans for each in rest):
        return True
    if isinstance(scope, ast.Module) or loop not in scope.body:
        return False
    for other, tree in facts.trees():
        for statement in (node for node in ast.walk(tree) if isinstance(node, _Simple)):
            parts = list(ast.walk(statement))
            calls = [node for node in parts if isinstance(node, ast.Call) and called_name(node) == scope.name]
            is_plain = not any(isinstance(node, ast.IfExp | ast.BoolOp | ast.Lambda) for node in parts)
            around = facts.span_of(statement, other)
            if calls and is_plain and any(is_inside(span, around) for span in spans):
                return True
    return False

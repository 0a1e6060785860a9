"""Names sums over parameters or modules that stay zero, because the line that adds to them never runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import block_around, is_inside
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut

_OVER = frozenset("children named_children modules named_modules parameters named_parameters".split())
_RECORDED = frozenset(
    "sum norm pow square abs mean matmul mm t exp log log_prob flatten view reshape dot max min float sigmoid".split()
)
_COMPARING = ast.In | ast.NotIn | ast.Eq | ast.NotEq | ast.Is
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.Module


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if not is_complete(facts.trace) or facts.trace.inspection.switches or not training.measured.passes:
        return
    spans = [span for call_site in {call.site for call in facts.calls} if (span := facts.span(call_site)) is not None]
    for file, tree in facts.trees():
        scopes: list[_Scope] = [tree, *(node for node in ast.walk(tree) if isinstance(node, _Function))]
        for scope in scopes:
            for loop in (node for node in _own(scope) if isinstance(node, ast.For)):
                yield from _found(facts, file, (scope, loop), spans)


def _found(facts: TraceIndex, file: str, place: tuple[_Scope, ast.For], spans: list[Span]) -> Iterator[StandingOut]:
    scope, loop = place
    if not any(isinstance(node, ast.Call) and _called(node) in _OVER for node in ast.walk(loop.iter)):
        return
    added = [node for node in ast.walk(loop) if isinstance(node, ast.AugAssign | ast.Assign) and _name(node)]
    for name in {_name(node) for node in added}:
        adding = [node for node in added if _name(node) == name]
        others = [node for node in _own(scope) if isinstance(node, ast.AugAssign | ast.Assign) and _sets(node, name)]
        starts = [node for node in others if node not in adding]
        if not starts or not all(_is_zero(node.value) for node in starts) or not all(map(_is_recorded, adding)):
            continue
        ran = [span for span in spans for node in adding if is_inside(span, facts.span_of(node, file))]
        choices = [node for node in ast.walk(loop) if isinstance(node, ast.If)]
        if not ran and len(choices) < 2 and all(map(_is_choice, choices)) and _has_run(facts, file, place, spans):
            line = facts.span_of(adding[0], file)
            tests, skips = [each.test for each in choices], any(isinstance(n, ast.Continue) for n in ast.walk(loop))
            holds = "each" if skips else "none"
            what = f"`{facts.code_of(tests[0], file)}` holds for {holds} of" if tests else "there is nothing in"
            yield stands_out(
                f"`{name}` stays zero: the line that adds to it never runs, because {what} "
                f"`{facts.code_of(loop.iter, file)}`",
                Label("observed_here", line, "never runs"),
                Label("observed_here", facts.span_of(tests[0] if tests else loop.iter, file), "keeps it from running"),
            )


def _own(scope: _Scope) -> Iterator[ast.AST]:
    """Yields the nodes of a function or a file that are in no function inside it."""
    waiting: list[ast.AST] = list(scope.body)
    for node in waiting:
        yield node
        if not isinstance(node, _Function | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _name(node: ast.AugAssign | ast.Assign) -> str:
    """Returns the variable that a statement adds to, as in `total += x` and `total = total + x`; "" if it does not."""
    if isinstance(node, ast.AugAssign):
        return node.target.id if isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name) else ""
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Name) or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return ""
    return target.id if isinstance(value.left, ast.Name) and value.left.id == target.id else ""


def _sets(node: ast.AugAssign | ast.Assign, name: str) -> bool:
    targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
    return any(isinstance(each, ast.Name) and each.id == name for target in targets for each in ast.walk(target))


def _is_zero(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return value.value == 0 and not isinstance(value.value, bool)
    is_zeros = isinstance(value, ast.Call) and _called(value) in ("zeros", "tensor", "new_zeros")
    numbers = [node.value for node in ast.walk(value) if isinstance(node, ast.Constant)]
    return is_zeros and (_called(value) != "tensor" or numbers[:1] in ([0], [0.0]))  # type: ignore[arg-type]


def _is_recorded(node: ast.AugAssign | ast.Assign) -> bool:
    """Returns whether a statement makes a call that the trace would have."""
    return any(isinstance(part, ast.Call) and _called(part) in _RECORDED for part in ast.walk(node.value))


def _is_choice(choice: ast.If) -> bool:
    """Returns whether a condition chooses by the type or the name of a module or parameter, or skips the others."""
    test = choice.test
    skips = len(choice.body) == 1 and isinstance(choice.body[0], ast.Continue)
    has_more = any(isinstance(node, ast.Continue | ast.Break | ast.Return) for node in ast.walk(choice))
    if choice.orelse or has_more != skips:
        return False
    if skips and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    return all(
        (isinstance(part, ast.Call) and _called(part) in ("isinstance", "endswith", "startswith"))
        or (isinstance(part, ast.Compare) and isinstance(part.ops[0], _COMPARING) and _has_text(part))
        for part in parts
    )


def _has_text(test: ast.Compare) -> bool:
    nodes = (test.left, *test.comparators)
    return any(
        (isinstance(node, ast.Constant) and isinstance(node.value, str))
        or (isinstance(node, ast.Call) and _called(node) == "type")
        for node in nodes
    )


def _has_run(facts: TraceIndex, file: str, place: tuple[_Scope, ast.For], spans: list[Span]) -> bool:
    """Returns whether the trace shows that a loop has run: calls beside it, or in a statement that calls its function
    where no condition can keep it from running."""
    scope, loop = place
    beside = (each for each in block_around(facts, file, loop) if each is not loop and isinstance(each, _SIMPLE))
    rest = [facts.span_of(each, file) for each in beside]
    if any(is_inside(span, each) for span in spans for each in rest):
        return True
    if isinstance(scope, ast.Module) or loop not in scope.body:
        return False
    for other, tree in facts.trees():
        for statement in (node for node in ast.walk(tree) if isinstance(node, _SIMPLE)):
            parts = list(ast.walk(statement))
            calls = [node for node in parts if isinstance(node, ast.Call) and _called(node) == scope.name]
            is_plain = not any(isinstance(node, ast.IfExp | ast.BoolOp | ast.Lambda) for node in parts)
            around = facts.span_of(statement, other)
            if calls and is_plain and any(is_inside(span, around) for span in spans):
                return True
    return False


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


_SIMPLE = ast.Expr | ast.Assign | ast.AugAssign | ast.Return | ast.AnnAssign

"""Finds the statements that change a tensor in place, by their syntax, and rewrites them to make a new tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.naming.code_text import OPERATORS
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.expressions import ONLY_IN_PLACE, arguments_text, needs_brackets
from tensorlens.diagnostics.shared.edits.statements import indents, is_alone, module_name
from tensorlens.records.report import Edit

_MODULES = ("torch", "Tensor", "F", "nn", "functional", "init")
_VIEWS = (
    "view",
    "view_as",
    "reshape",
    "flatten",
    "t",
    "transpose",
    "permute",
    "squeeze",
    "unsqueeze",
    "narrow",
    "select",
)


def target_of(statement: ast.AST | None) -> ast.expr | None:
    """Returns what a statement changes in place and nothing else does with: `x` of `x += 1`, `x.mul_(2).add_(1)`,
    `x[0] = 1` (there `x[0]`), `y = x.clamp_(0)`."""
    if isinstance(statement, ast.AugAssign):
        return statement.target
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        if isinstance(statement.targets[0], ast.Subscript):
            return statement.targets[0]
        return _receiver(statement.value)
    if isinstance(statement, ast.Expr | ast.Return):
        return _receiver(statement.value)
    return None


def _receiver(value: ast.expr | None) -> ast.expr | None:
    """Returns `x` of a chain of methods that all write: `x.mul_(2).add_(1)`."""
    inner, found = value, False
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and is_in_place(inner.func.attr):
        if _is_module(inner.func.value):
            return inner.args[0] if inner is value and inner.args else None
        inner, found = inner.func.value, True
    return inner if found else None


def _is_module(node: ast.expr) -> bool:
    """Returns whether a function is called on a module or a class, as in `torch.relu_(x)`, and not on a tensor."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in _MODULES


def is_in_place(method: str) -> bool:
    return method.endswith("_") and not method.endswith("__")


def owner_of(target: ast.expr) -> str | None:
    """Returns the name of the tensor that owns a written place: `w` of `w[0]`, `w.view(-1)[2:]` or `w.T`."""
    inner = target
    while True:
        if isinstance(inner, ast.Subscript) or (isinstance(inner, ast.Attribute) and inner.attr in ("T", "mT", "H")):
            inner = inner.value
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _VIEWS:
            inner = inner.func.value
        else:
            return plain_name(inner)


def statements_of(facts: TraceIndex, file: str, line: int) -> list[ast.stmt]:
    """Returns the statements of the function around a line, or of the module without its functions, in the order of
    their lines."""
    return sorted(
        _statements(scope_around(facts, file, line)), key=lambda statement: (statement.lineno, statement.col_offset)
    )


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _statements(child)


def as_new_tensor(facts: TraceIndex, file: str, statement: ast.stmt) -> Edit | None:
    """Rewrites a statement that changes a named tensor in place: `x *= a + b` becomes `x = x * (a + b)`, and
    `x.mul_(2).add_(1)` becomes `x = x.mul(2).add(1)`."""
    target = target_of(statement)
    name = None if target is None else plain_name(target)
    if name is None or isinstance(statement, ast.Return):
        return None
    span = facts.span_of(statement, file)
    text = new_value(facts, file, statement)
    if text is None or span.line != span.end_line:
        return None
    both = [*statement.targets, target] if isinstance(statement, ast.Assign) else [target]
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return None
    names = " = ".join(dict.fromkeys(ast.unparse(each) for each in both if each is not None))
    return Edit(span, f"{names} = {text}")


def copied_into(
    facts: TraceIndex, file: str, statement: ast.Assign, values: ast.expr, *, is_recorded: bool = True
) -> Edit | None:
    """Writes values into the tensor that a name has, in the place of an assignment: `p = v` becomes `p.copy_(v)`, under
    `no_grad` unless recording is off there already."""
    torch = module_name(facts, file, "torch")
    if torch is None or statement.lineno != statement.end_lineno:
        return None
    place = facts.span_of(statement, file)
    write = f"{ast.unparse(statement.targets[0])}.copy_({facts.code_of(values, file)})"
    if not is_recorded:
        return Edit(place, write)
    if not is_alone(facts, file, statement):
        return None
    return Edit(place, f"with {torch}.no_grad():\n{indents(facts, file, place.line)[1]}{write}")


def new_value(facts: TraceIndex, file: str, statement: ast.stmt, name: str = "") -> str | None:
    """Returns the expression that makes what a statement writes: `x * 2` for `x *= 2`; None if there is none.

    With a `name`, it is computed from that: `h * 2` for `h.data *= 2`.
    """
    if isinstance(statement, ast.AugAssign):
        value = facts.code_of(statement.value, file)
        value = f"({value})" if needs_brackets(statement.op, statement.value) else value
        return f"{name or ast.unparse(statement.target)} {OPERATORS[type(statement.op)]} {value}"
    inner = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
    text = ""
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and is_in_place(inner.func.attr):
        if inner.func.attr in ONLY_IN_PLACE:
            return None
        if _is_module(inner.func.value):
            function = facts.code_of(inner.func, file).removesuffix("_")
            return f"{function}{arguments_text(facts, inner, file)}" if not text else None
        text, inner = f".{inner.func.attr[:-1]}{arguments_text(facts, inner, file)}{text}", inner.func.value
    return f"{name or ast.unparse(inner)}{text}" if inner is not None and text else None

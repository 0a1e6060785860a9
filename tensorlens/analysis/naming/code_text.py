"""Writes expressions of a script as text of at most a given length: `torch.add(...)`, `hidden.mul_(...)`, `a @ ...`.

What is left out is three dots, so that the rest is still the script's own code.
"""

from __future__ import annotations

import ast

from tensorlens.records.source import one_line

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Gt: ">", ast.Lt: "<", ast.GtE: ">=", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def code_text(node: ast.expr, limit: int = 40) -> str:
    """Returns an expression on one line, with `...` for the parts that are too long."""
    text = one_line(ast.unparse(node))
    if len(text) <= limit:
        return text
    short = _shortened(node, limit)
    return short if len(short) <= limit else "..."


def _shortened(node: ast.expr, limit: int) -> str:
    if isinstance(node, ast.Call):
        return f"{_primary(node.func, limit - 5)}(...)"
    if isinstance(node, ast.Attribute):
        return f"{_primary(node.value, limit - len(node.attr) - 1)}.{node.attr}"
    if isinstance(node, ast.Subscript):
        return f"{_primary(node.value, limit - 5)}[...]"
    if isinstance(node, ast.BinOp):
        return _operation(node.left, OPERATORS[type(node.op)], limit, is_first=_is_looser(node.left, node.op))
    if isinstance(node, ast.Compare):
        return _operation(node.left, _COMPARISONS[type(node.ops[0])], limit)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"-{_primary(node.operand, limit - 1)}"
    return "..."


def _is_looser(left: ast.expr, operator: ast.operator) -> bool:
    """Returns whether the left side of a product or quotient is a sum or difference, which needs parentheses."""
    is_product = isinstance(operator, ast.Mult | ast.Div | ast.FloorDiv | ast.Mod | ast.MatMult)
    return is_product and isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add | ast.Sub)


def _operation(left: ast.expr, sign: str, limit: int, *, is_first: bool = False) -> str:
    """Returns the text of an operation without its right side. A left side computed first is in parentheses."""
    room = limit - len(sign) - 5
    if isinstance(left, ast.BinOp) and len(one_line(ast.unparse(left))) > room - 2 * is_first:
        return _shortened(left, limit)
    return f"({code_text(left, room - 2)}) {sign} ..." if is_first else f"{code_text(left, room)} {sign} ..."


def _primary(node: ast.expr, limit: int) -> str:
    """Returns an expression in front of `.name`, `[...]` or `(...)`: in parentheses where Python needs them."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        return code_text(node, limit)
    return f"({code_text(node, limit - 2)})"


def change_text(node: ast.AST | None, limit: int = 40) -> str:
    """Returns a statement that changes something, or an expression, as the script writes it.

    The value that is assigned is left out: `p -= ...`, `x[0] = ...`, `layer.weight.data = ...`. The result is "" for
    other statements.
    """
    if isinstance(node, ast.AugAssign):
        sign = OPERATORS[type(node.op)]
        return f"{code_text(node.target, limit - len(sign) - 5)} {sign}= ..."
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
        return f"{code_text(node, limit - 6)} = ..."
    return code_text(node, limit) if isinstance(node, ast.expr) else ""

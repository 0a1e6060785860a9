"""Makes the edits of a help: an operation in place becomes one that makes a new tensor, an expression gets a method.

An edit is made only where the syntax of the line leaves no doubt about the result; else the functions return None.
"""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.naming.syntax import last_name, plain_name
from tensorlens.analysis.shared_frame import is_local
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call, Span
from tensorlens.records.report import Edit
from tensorlens.records.source import text_of

MAX_POSITIONAL = 4  # arguments that a call may be given by position
ONLY_IN_PLACE = frozenset(
    (
        *("copy_", "fill_", "fill_diagonal_", "set_", "zero_", "apply_", "map_", "map2_", "random_", "resize_"),
        *("resize_as_", "normal_", "log_normal_", "uniform_", "cauchy_", "exponential_", "geometric_"),
        *("bernoulli_", "requires_grad_", "detach_", "share_memory_", "rename_"),
    )
)
"""Methods without a variant that makes a new tensor with the same meaning."""

_LOOSE = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Await, ast.Starred)


def expanded_assignment(facts: TraceIndex, site: int) -> Edit | None:
    """Writes an augmented assignment to a name out: `x /= length + eps` becomes `x = x / (length + eps)`."""
    span = facts.trace.sites[site].span
    node = facts.names.syntax.node(span)
    augmented = facts.names.syntax.augmented(facts.trace.sites[site])
    if augmented is None or not isinstance(node, ast.AugAssign) or span.line != span.end_line:
        return None
    target, sign = augmented
    if target in facts.names.syntax.loop_names():
        return None  # what the loop goes over would keep the old tensor
    value = facts.code_of(node.value, span.file)
    value = f"({value})" if needs_brackets(node.op, node.value) else value
    return Edit(span, f"{target} = {target} {sign} {value}")


def needs_brackets(op: ast.operator, value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp) and isinstance(op, ast.Add | ast.Sub):
        return not isinstance(value.op, ast.Mult | ast.Div | ast.MatMult | ast.Pow)
    if isinstance(value, ast.BinOp) and isinstance(op, ast.Mult | ast.Div | ast.MatMult):
        return not isinstance(value.op, ast.Pow)
    return isinstance(value, (*_LOOSE, ast.Tuple))


def with_call(facts: TraceIndex, span: Span, method: str) -> Edit | None:
    """Appends a method call to the expression at `span`: `out.detach()` becomes `out.detach().clone()`."""
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.expr) or span.line != span.end_line:
        return None
    text = text_of(facts.trace.sources.get(span.file, ""), span)
    return Edit(span, f"({text}).{method}()" if isinstance(node, (*_LOOSE, ast.Tuple)) else f"{text}.{method}()")


def out_of_place(facts: TraceIndex, number: int, op: str) -> Edit | None:
    """Replaces methods that write, such as `x.mul_(2)`, by those that make a new tensor, which `x` is assigned to.

    The value of the expression goes where it went before, if the statement uses it.
    """
    span = facts.trace.sites[number].span
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or span.line != span.end_line:
        return None
    if not op.startswith("Tensor."):  # `torch.relu_(x)`: the name before the dot is no tensor
        return None
    statement = statement_around(facts, span)
    if not isinstance(statement, ast.Expr):
        name = facts.code_of(node.func, span.file)
        return Edit(facts.span_of(node.func, span.file), name[:-1]) if name.endswith("_") else None
    text, inner = "", statement.value
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        method = inner.func.attr
        if not method.endswith("_") or method.endswith("__") or method in ONLY_IN_PLACE:
            return None
        text, inner = f".{method[:-1]}{arguments_text(facts, inner, span.file)}{text}", inner.func.value
    target = plain_name(inner)
    if target in facts.names.syntax.loop_names():
        return None  # what the loop goes over would keep the old tensor
    place = facts.span_of(statement, span.file)
    if target is None or isinstance(inner, ast.Subscript) or place.line != place.end_line:
        return None
    if not is_local(facts, number, target):
        return None  # the assignment would make a variable of the function
    return Edit(place, f"{target} = {target}{text}")


def arguments_text(facts: TraceIndex, call: ast.Call, file: str) -> str:
    """Returns the arguments of a call in their parentheses, as the script writes them."""
    whole, before = facts.span_of(call, file), facts.span_of(call.func, file)
    inside = Span(file, before.end_line, before.end_column, whole.end_line, whole.end_column)
    return text_of(facts.trace.sources[file], inside)


def without_inplace(facts: TraceIndex, call: Call) -> Edit | None:
    """Leaves out `inplace=True` where the statement uses the result."""
    span = facts.trace.sites[call.site].span
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or isinstance(statement_around(facts, span), ast.Expr):
        return None
    return without_keyword(facts, node, "inplace", span.file)


def without_keyword(facts: TraceIndex, call: ast.Call, name: str, file: str) -> Edit | None:
    """Leaves an argument that is the last one out of a call on one line."""
    if not call.keywords or call.keywords[-1].arg != name or call.lineno != call.end_lineno:
        return None
    keyword = facts.span_of(call.keywords[-1], file)
    before = [facts.span_of(each, file) for each in (*call.args, *(k.value for k in call.keywords[:-1]))]
    begin = before[-1] if before else None
    column = keyword.column if begin is None else begin.end_column
    return Edit(Span(file, keyword.line, column, keyword.end_line, keyword.end_column), "")


def with_keyword(facts: TraceIndex, site: int, name: str, value: str) -> Edit | None:
    """Gives the call at a site a keyword argument: its value is replaced if the call has it, else it is added last.

    None if the call may be given it in another way: by position after four others, or by `*args` or `**kwargs`.
    """
    span = facts.trace.sites[site].span
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or span.file not in facts.trace.sources:
        return None
    known = any(keyword.arg == name for keyword in node.keywords)
    if not known and (len(node.args) > MAX_POSITIONAL or any(isinstance(one, ast.Starred) for one in node.args)):
        return None
    return _with_keyword(facts, node, span.file, name, value)


def not_reentrant(facts: TraceIndex, span: Span | None) -> Edit | None:
    """Gives the call of a checkpoint `use_reentrant=False`. It may have any number of positional arguments."""
    node = None if span is None else facts.names.syntax.node(span)
    if span is None or not isinstance(node, ast.Call):
        return None
    is_checkpoint = last_name(node.func) in ("checkpoint", "checkpoint_sequential")
    return _with_keyword(facts, node, span.file, "use_reentrant", "False") if is_checkpoint else None


def with_parentheses(facts: TraceIndex, site: int | None) -> Edit | None:
    """Calls the method that a whole statement only names: `loss.backward` becomes `loss.backward()`."""
    span = facts.span(site)
    node = None if span is None else facts.names.syntax.node(span)
    if span is None or site is None or not isinstance(node, ast.Attribute):
        return None
    if not facts.names.syntax.is_whole_statement(facts.trace.sites[site]):
        return None
    return Edit(Span(span.file, span.end_line, span.end_column, span.end_line, span.end_column), "()")


def _with_keyword(facts: TraceIndex, call: ast.Call, file: str, name: str, value: str) -> Edit | None:
    """Sets a keyword argument of a call: `checkpoint(f, x)` becomes `checkpoint(f, x, use_reentrant=False)`."""
    known = next((keyword for keyword in call.keywords if keyword.arg == name), None)
    if known is not None:
        return Edit(facts.span_of(known.value, file), value)
    last = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(keyword.arg is None for keyword in call.keywords):  # `**options` may set it too
        return None
    if not last:
        whole = facts.span_of(call, file)
        inside = Span(file, whole.end_line, whole.end_column - 1, whole.end_line, whole.end_column - 1)
        return Edit(inside, f"{name}={value}")
    end = max((facts.span_of(each, file) for each in last), key=lambda span: (span.end_line, span.end_column))
    if isinstance(last[-1], ast.GeneratorExp | ast.Starred) and len(last) == 1:
        return None
    closed = _after_brackets(facts, end, call)
    return None if closed is None else Edit(closed, f", {name}={value}")


def _after_brackets(facts: TraceIndex, end: Span, call: ast.Call) -> Span | None:
    """Returns the empty span behind the last argument of a call, which may be in brackets of its own."""
    whole = facts.span_of(call, end.file)
    behind = Span(end.file, end.end_line, end.end_column, whole.end_line, whole.end_column - 1)
    code = text_of(facts.trace.sources[end.file], behind).rstrip().removesuffix(",").rstrip()
    if code.strip(")"):
        return None  # a comment, or another line
    return Span(end.file, end.end_line, end.end_column + len(code), end.end_line, end.end_column + len(code))


def argument_with_call(facts: TraceIndex, file: str, line: int, name: str, method: str) -> Edit | None:
    """Appends a method call to the argument `name` of the only call on a line that is given it."""
    found = [
        argument
        for node in ast.walk(facts.tree(file))
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords))
        if argument.lineno == line and plain_name(argument) == name
    ]
    if len(found) != 1:
        return None
    return Edit(facts.span_of(found[0], file), f"{name}.{method}()")

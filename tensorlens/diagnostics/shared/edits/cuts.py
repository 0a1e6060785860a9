"""Makes the edits that let a gradient go past a cut: without `detach()`, `item()` or NumPy."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tensorlens.analysis.code_around import scope_around, statement_at
from tensorlens.analysis.naming.assignments import assigned_pairs
from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span
from tensorlens.records.report import Edit
from tensorlens.records.source import line_at

_LOOSE = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.GeneratorExp)
_NUMBER_MODULES = ("np", "numpy", "math", "json", "statistics", "random")
_NUMBERS = ("item", "detach", "data", "tolist")


def without_method(facts: TraceIndex, span: Span, names: Iterable[str]) -> Edit | None:
    """Leaves the last method call or attribute of an expression out: `x.detach()` becomes `x`."""
    node = facts.names.syntax.node(span)
    inner = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Call) and (node.args or node.keywords):
        return None
    if (
        not isinstance(node, ast.expr)
        or not isinstance(inner, ast.Attribute)
        or inner.attr not in names
        or not isinstance(inner.ctx, ast.Load)
    ):
        return None
    return _without_end(facts, inner.value, node, span.file)


def tied(facts: TraceIndex, span: Span) -> tuple[str, tuple[Edit, ...]] | None:
    """Ties two parameters: `a.weight.data = b.weight.data` becomes `a.weight = b.weight`. Returns that, and the edits.

    None if the line assigns something else than a `.data` to a `.data`.
    """
    statement = statement_at(facts, span.file, span.line)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Attribute) or not isinstance(value, ast.Attribute):
        return None
    if (target.attr, value.attr) != ("data", "data") or not isinstance(target.value, ast.Attribute):
        return None
    edits = tuple(_without_end(facts, each.value, each, span.file) for each in (target, value))
    return f"{ast.unparse(target.value)} = {ast.unparse(value.value)}", edits


def _without_end(facts: TraceIndex, kept: ast.expr, node: ast.expr, file: str) -> Edit:
    """Leaves out what follows an expression that `node` begins with: `(a - b).detach()` becomes `(a - b)`."""
    whole, inner = facts.span_of(node, file), facts.span_of(kept, file)
    line, column = inner.end_line, inner.end_column
    while line < whole.end_line or column < whole.end_column:  # a parenthesis around it is no part of its span
        rest = line_at(facts.trace.sources[file], line)[column:]
        if rest.lstrip()[:1] == ")":
            column += len(rest) - len(rest.lstrip()) + 1
        elif rest.lstrip()[:1] in ("", "#", "\\") and ")" in _until_dot(facts, file, line + 1):
            line, column = line + 1, 0
        else:
            break
    return Edit(Span(file, line, column, whole.end_line, whole.end_column), "")


def _until_dot(facts: TraceIndex, file: str, line: int) -> str:
    return line_at(facts.trace.sources[file], line).partition(".")[0]


def without_conversion(facts: TraceIndex, span: Span) -> Edit | None:
    """Keeps the tensor where a plain number was made of it: `loss.item()` and `float(loss)` become `loss`."""
    node = facts.names.syntax.node(span)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("float", "int"):
        if len(node.args) != 1 or node.keywords or span.line != span.end_line:
            return None
        text = facts.code_of(node.args[0], span.file)
        return Edit(span, f"({text})" if isinstance(node.args[0], _LOOSE) else text)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        inner = node.func.value  # `loss.detach().item()`: both cut
        begin = inner
        while isinstance(begin, ast.Call | ast.Attribute):
            step = begin.func if isinstance(begin, ast.Call) else begin
            if not isinstance(step, ast.Attribute) or step.attr not in (*_NUMBERS, "cpu"):
                break
            begin = step.value
        return _without_end(facts, begin, node, span.file)
    return None


def needs_number(facts: TraceIndex, span: Span) -> bool:
    """Returns whether the function around a conversion passes the number, or what it computes from it, to code that a
    tensor would break: `round(loss.item(), 2)`."""
    nodes = list(ast.walk(scope_around(facts, span.file, span.line)))
    made = [pair for each in nodes if isinstance(each, ast.stmt) for pair in assigned_pairs(each)]
    names, parts = set[str](), {id(facts.names.syntax.node(span))}
    while True:
        parts |= {id(n) for n in nodes if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)}
        more = {
            target.id
            for target, value in made
            if isinstance(target, ast.Name) and any(id(part) in parts for part in _summands(value))
        }
        if more <= names:
            break
        names |= more
    calls = (each for each in nodes if isinstance(each, ast.Call) and _takes_numbers(each.func))
    return any(id(part) in parts for call in calls for value in call.args for part in _summands(value))


def _summands(value: ast.expr) -> Iterator[ast.expr]:
    """Yields an expression and, of arithmetic, its operands."""
    yield value
    for side in (value.left, value.right) if isinstance(value, ast.BinOp) else ():
        yield from _summands(side)


def _takes_numbers(function: ast.expr) -> bool:
    name = ast.unparse(function)
    return name in ("round", "range", "divmod", "complex") or root_of(name) in _NUMBER_MODULES


def argument_itself(facts: TraceIndex, span: Span, as_list: bool) -> Edit | None:
    """Replaces `torch.tensor(x)` by `x`; with `as_list`, `torch.tensor(losses)` by `torch.stack(losses)`."""
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or len(node.args) != 1 or isinstance(node.args[0], ast.Starred):
        return None
    value, text = node.args[0], facts.code_of(node.args[0], span.file)
    if span.line != span.end_line:
        return None
    if as_list:
        if isinstance(value, ast.GeneratorExp) or not isinstance(node.func, ast.Attribute):
            return None
        return Edit(span, f"{ast.unparse(node.func.value)}.stack({text})")
    if not _is_arithmetic(value):
        return None
    statement = statement_at(facts, span.file, span.line)
    is_whole = isinstance(statement, ast.Assign | ast.Return) and statement.value is node
    return Edit(span, f"({text})" if isinstance(value, _LOOSE) and not is_whole else text)


def _is_arithmetic(value: ast.expr) -> bool:
    """Returns whether an expression works with tensors as it does with numbers."""
    for part in ast.walk(value):
        if isinstance(part, ast.Call):
            if not isinstance(part.func, ast.Name) or part.func.id not in ("sum", "len", "max", "min", "abs"):
                return False
        elif not isinstance(
            part,
            ast.Name
            | ast.Attribute
            | ast.Subscript
            | ast.BinOp
            | ast.UnaryOp
            | ast.Constant
            | ast.expr_context
            | ast.operator
            | ast.unaryop
            | ast.List
            | ast.Tuple,
        ):
            return False
    return True


def in_torch(facts: TraceIndex, span: Span) -> Edit | None:
    """Computes in torch what NumPy computed: `torch.from_numpy(p - y.numpy())` becomes `(pred - y)`.

    `p` is a name that the function assigns once, `p = pred.detach().numpy()`. None if the expression has anything but
    arithmetic.
    """
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords or span.line != span.end_line:
        return None
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("from_numpy", "as_tensor", "tensor"):
        return None
    text = _rewritten(facts, span, node.args[0])
    if text is None:
        return None
    statement = statement_at(facts, span.file, span.line)
    is_whole = isinstance(statement, ast.Assign | ast.Return) and statement.value is node
    return Edit(span, f"({text})" if isinstance(node.args[0], _LOOSE) and not is_whole else text)


def _rewritten(facts: TraceIndex, span: Span, value: ast.expr) -> str | None:
    tensors = _tensors_of_arrays(facts, span)
    text = facts.code_of(value, span.file)
    changes: list[tuple[int, int, str]] = []
    start, waiting = facts.span_of(value, span.file).column, [value]
    while waiting:
        part = waiting.pop()
        place = facts.span_of(part, span.file)
        array = _without_numpy(part)
        if array is not None:
            changes.append((place.column - start, place.end_column - start, ast.unparse(array)))
        elif isinstance(part, ast.Name) and part.id in tensors:
            changes.append((place.column - start, place.end_column - start, tensors[part.id]))
        elif isinstance(part, ast.BinOp):
            waiting += [part.left, part.right]
        elif isinstance(part, ast.UnaryOp):
            waiting.append(part.operand)
        elif not isinstance(part, ast.Constant):
            return None
    for begin, end, new in sorted(changes, reverse=True):
        text = text[:begin] + new + text[end:]
    return text if changes else None


def _tensors_of_arrays(facts: TraceIndex, span: Span) -> dict[str, str]:
    """Returns, for the names of arrays that a function assigns once, the tensor that each is made of."""
    scope = scope_around(facts, span.file, span.line)
    stored = [n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    found: dict[str, str] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            array, name = _without_numpy(node.value), node.targets[0].id
            if isinstance(array, ast.Name) and stored.count(name) == 1 and stored.count(array.id) <= 1:
                found[name] = array.id
    return found


def _without_numpy(node: ast.expr) -> ast.expr | None:
    """Returns `pred` of `pred.detach().cpu().numpy()`; None for anything else."""
    inner, names = node, list[str]()
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and not inner.args:
        names.append(inner.func.attr)
        inner = inner.func.value
    is_array = bool(names) and names[0] == "numpy" and {*names} <= {"numpy", "detach", "cpu"}
    return inner if is_array and isinstance(inner, ast.Name) else None


def values_for_indices(facts: TraceIndex, span: Span | None) -> Edit | None:
    """Reads the values where the indices were read: `x.topk(2).indices` becomes `x.topk(2).values`."""
    node = None if span is None else facts.names.syntax.node(span)
    for each in ast.walk(facts.tree(span.file)) if span else ():
        if isinstance(each, ast.Attribute) and each.attr == "indices" and each.value is node and span is not None:
            whole = facts.span_of(each, span.file)
            begin = whole.end_column - len("indices")
            return Edit(Span(span.file, whole.end_line, begin, whole.end_line, whole.end_column), "values")
    return None

"""Makes the edits of the helps that the front matter of a page offers, by the name that the page gives each edit.

An edit is made only where recorded facts and the syntax leave no doubt; else the help stays a text.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from tensorlens.analysis.code_around import scope_around, statement_at
from tensorlens.analysis.naming.syntax import last_name, plain_name
from tensorlens.analysis.shared_frame import is_argument, is_returned
from tensorlens.diagnostics.shared.edits.expressions import not_reentrant, with_call, without_keyword
from tensorlens.diagnostics.shared.edits.kept_attributes import detached_where_kept
from tensorlens.diagnostics.shared.edits.no_grad import as_result, under_no_grad
from tensorlens.diagnostics.shared.edits.recorded_views import view_outside_no_grad
from tensorlens.diagnostics.shared.edits.summed_gradients import summed_gradient
from tensorlens.diagnostics.shared.edits.writes import as_new_tensor, target_of
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.records.model import Span
from tensorlens.records.report import Edit
from tensorlens.records.source import text_of

Edits = tuple[Edit, ...]
Made = Callable[[RejectedCall, Span], Edits | None]
"""Makes the edits of a help for a rejected call and the place of the help; None if it cannot be made safely."""

_ENTERING = ("from_numpy", "as_tensor", "asarray", "tensor", "Tensor", "FloatTensor", "from_dlpack")


def no_grad_mode(rejected: RejectedCall, place: Span) -> Edits | None:
    """Replaces the `inference_mode` that begins at the place, as a block or as a decorator, by `no_grad`."""
    lines, tree = range(place.line, place.end_line + 1), rejected.facts.tree(place.file)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr) and node.lineno in lines]
    named = [node for node in nodes if last_name(node) == "inference_mode"]
    calls = [node for node in nodes if isinstance(node, ast.Call) and last_name(node.func) == "inference_mode"]
    if len(named) != 1 or not isinstance(named[0], ast.Attribute) or any(each.args or each.keywords for each in calls):
        return None
    return (Edit(_end_of_name(rejected, named[0], place.file), "no_grad"),)


def not_in_place(rejected: RejectedCall, place: Span) -> Edits | None:
    """Writes the activation at the place so that it makes a new tensor."""
    facts, statement = rejected.facts, statement_at(rejected.facts, place.file, place.line)
    target = target_of(statement)
    if statement is not None and isinstance(target, ast.Name) and target.id not in facts.names.syntax.loop_names():
        return _one(as_new_tensor(facts, place.file, statement))
    node = _node(rejected, place)
    if not isinstance(node, ast.Call) or isinstance(statement, ast.Expr):
        return None
    return _one(without_keyword(facts, node, "inplace", place.file))


def write_under_no_grad(rejected: RejectedCall, place: Span) -> Edits | None:
    """Puts the rejected write to a view of a leaf under `no_grad`; a write to another tensor has to be recorded."""
    view = next((a.tensor for a in rejected.inputs if rejected.is_view(a.tensor)), None)
    base = None if view is None else rejected.facts.tensor(view).base
    return under_no_grad(rejected) if base is not None and rejected.is_leaf(base) else None


def reshaped(rejected: RejectedCall, place: Span) -> Edits | None:
    """Writes `reshape` in the place of `view`: it is a view wherever one is possible."""
    return _renamed(rejected, place, "view", "reshape")


def not_kept_with_graph(rejected: RejectedCall, place: Span) -> Edits | None:
    """Detaches the tensor where an attribute keeps it."""
    number = rejected.first(rejected.is_nonleaf)
    return None if number is None else _one(detached_where_kept(rejected.facts, number, rejected.index))


def summed_over_added(rejected: RejectedCall, place: Span) -> Edits | None:
    """Sums a gradient only over the dimensions that `forward` added."""
    found = summed_gradient(rejected.facts, rejected.index, rejected.message)
    return None if found is None else (found.edit,)


def full_hook(rejected: RejectedCall, place: Span) -> Edits | None:
    return _renamed(rejected, place, "register_backward_hook", "register_full_backward_hook")


def copied(rejected: RejectedCall, place: Span) -> Edits | None:
    """Appends `.clone()` to the expression at the place."""
    return _one(with_call(rejected.facts, place, "clone"))


def read_from_copy(rejected: RejectedCall, place: Span) -> Edits | None:
    """Appends `.clone()` to what the statement at the place reads: `x[1:] = x[:-1].clone()`."""
    statement = statement_at(rejected.facts, place.file, place.line)
    value: ast.expr | None = getattr(statement, "value", None)
    if isinstance(statement, ast.Expr) and isinstance(value, ast.Call) and len(value.args) == 1:
        value = value.args[0]  # `x[1:].copy_(x[:-1])`
    is_plain = isinstance(value, ast.Subscript | ast.Name | ast.Attribute)
    if value is None or not is_plain or not isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign):
        return None
    return _one(with_call(rejected.facts, rejected.facts.span_of(value, place.file), "clone"))


def new_tensor(rejected: RejectedCall, place: Span) -> Edits | None:
    """Rewrites the statement at the place to make a new tensor, where the function goes on with its own name for it."""
    facts, statement = rejected.facts, statement_at(rejected.facts, place.file, place.line)
    target = target_of(statement)
    if statement is None or not isinstance(target, ast.Name) or rejected.site is None:
        return not_in_place(rejected, place)
    if target.id in facts.names.syntax.loop_names():
        return None
    if is_argument(facts, rejected.site, target.id) and not is_returned(facts, rejected.site, target.id):
        return None  # the caller's tensor has to change
    return _one(as_new_tensor(facts, place.file, statement))


def returned_result(rejected: RejectedCall, place: Span) -> Edits | None:
    """Writes `c = torch.add(a, b)` in the place of `torch.add(a, b, out=c)`."""
    statement, source = statement_at(rejected.facts, place.file, place.line), rejected.facts.trace.sources[place.file]
    call = statement.value if isinstance(statement, ast.Expr) else None
    if statement is None or not isinstance(call, ast.Call) or not call.keywords or call.keywords[-1].arg != "out":
        return None
    name, before = plain_name(call.keywords[-1].value), [*call.args, *(each.value for each in call.keywords[:-1])]
    begin, whole = rejected.facts.span_of(statement, place.file), rejected.facts.span_of(call, place.file)
    if name is None or not name.isidentifier() or not before or begin.line != whole.end_line:
        return None
    end = rejected.facts.span_of(before[-1], place.file)
    text = text_of(source, Span(place.file, begin.line, begin.column, end.end_line, end.end_column))
    return (Edit(begin, f"{name} = {text})"),)


def detached(rejected: RejectedCall, place: Span) -> Edits | None:
    """Writes `x = x.detach()` in the place of `x.detach_()`."""
    statement = statement_at(rejected.facts, place.file, place.line)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if statement is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    name = plain_name(call.func.value)
    if call.func.attr != "detach_" or name is None or name in rejected.facts.names.syntax.loop_names():
        return None
    return (Edit(rejected.facts.span_of(statement, place.file), f"{name} = {name}.detach()"),)


def detached_for_numpy(rejected: RejectedCall, place: Span) -> Edits | None:
    """Puts `.detach()` before `.numpy()`, unless a function of the traceback takes arrays back into torch."""
    facts, node = rejected.facts, _node(rejected, place)
    stack = rejected.failure.stack if rejected.failure is not None else ()
    if not stack or any(_takes_arrays(rejected, facts.span(site)) for site in stack):
        return None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy":
        value = node.func.value
    else:
        name = facts.name(rejected.inputs[0].tensor, rejected.index) if rejected.inputs else ""
        given = node.args if isinstance(node, ast.Call) else []
        found = [each for each in given if plain_name(each) == name]
        if len(found) != 1:
            return None
        value = found[0]
    return _one(with_call(facts, facts.span_of(value, place.file), "detach"))


def _takes_arrays(rejected: RejectedCall, span: Span | None) -> bool:
    """Returns whether a line of the function around a place makes a tensor of values from outside torch."""
    if span is None:
        return True
    inside = scope_around(rejected.facts, span.file, span.line)
    calls = (node for node in ast.walk(inside) if isinstance(node, ast.Call))
    entering = (call for call in calls if last_name(call.func) in _ENTERING and call.lineno >= span.line)
    return any(not ast.unparse(call.func).startswith(("np.", "numpy.")) for call in entering)


def _renamed(rejected: RejectedCall, place: Span, old: str, new: str) -> Edits | None:
    """Replaces the name of the method that is called at the place, or at the rejected line."""
    for span in (place, rejected.facts.span(rejected.site)):
        node = None if span is None else _node(rejected, span)
        if span is not None and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == old:
                return (Edit(_end_of_name(rejected, node.func, span.file), new),)
    return None


def _end_of_name(rejected: RejectedCall, node: ast.Attribute, file: str) -> Span:
    span = rejected.facts.span_of(node, file)
    return Span(file, span.end_line, span.end_column - len(node.attr), span.end_line, span.end_column)


def _node(rejected: RejectedCall, place: Span) -> ast.AST | None:
    return rejected.facts.names.syntax.node(place)


def _one(edit: Edit | None) -> Edits | None:
    return None if edit is None else (edit,)


EDITS: dict[str, Made] = {
    "as_result": lambda rejected, place: as_result(rejected),
    "copied": copied,
    "detached": detached,
    "detached_for_numpy": detached_for_numpy,
    "full_hook": full_hook,
    "new_tensor": new_tensor,
    "no_grad_mode": no_grad_mode,
    "not_kept_with_graph": not_kept_with_graph,
    "not_in_place": not_in_place,
    "not_reentrant": lambda rejected, place: _one(not_reentrant(rejected.facts, place)),
    "read_from_copy": read_from_copy,
    "reshaped": reshaped,
    "returned_result": returned_result,
    "summed_over_added": summed_over_added,
    "under_no_grad": lambda rejected, place: under_no_grad(rejected),
    "view_outside_no_grad": view_outside_no_grad,
    "write_under_no_grad": write_under_no_grad,
}
"""The edits that a page can name for a help, in `edits` of its front matter."""

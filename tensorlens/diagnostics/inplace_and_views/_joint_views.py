"""Makes the edits for a write to one of several views that one call made: `chunk()`, `split()`, `unbind()`, a loop over
a tensor.

The write goes through the tensor that was split, with an index; or it makes a new tensor, and the parts are joined
again where the function still reads the whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from tensorlens.analysis.code_around import block_around
from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.naming.variables import assigned_in, read_in
from tensorlens.analysis.shared_frame import is_argument
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.imports import imported
from tensorlens.diagnostics.shared.edits.statements import inserted_after, module_name, wrapped
from tensorlens.diagnostics.shared.edits.writes import (
    as_new_tensor,
    new_value,
    statements_of,
    target_of,
)
from tensorlens.records.model import Call, Span
from tensorlens.records.report import Edit

Edits = tuple[Edit, ...]
_SPLITTING = ("chunk", "split", "tensor_split", "split_with_sizes", "unbind")
_NAMES = ("k", "i", "j", "n", "index", "position")


@dataclass(frozen=True, slots=True)
class JointViews:
    """The call that made the views, the statement with the rejected write, and the name of the tensor that was
    split."""

    facts: TraceIndex
    file: str
    made: Call
    write: ast.stmt
    base: str  # "" if no line stored it under a name

    def text(self, node: ast.expr) -> str:
        return self.facts.code_of(node, self.file)

    def span(self, node: ast.expr) -> Span:
        return self.facts.span_of(node, self.file)

    def body(self) -> list[ast.stmt]:
        """Returns the statements of the function with the write."""
        return statements_of(self.facts, self.file, self.write.lineno)

    def is_read_below(self) -> bool:
        """Returns whether the function reads the whole tensor again, below the write or in the next iteration."""
        name = root_of(self.base)
        below = [each for each in self.body() if each.lineno > (self.write.end_lineno or 0)]
        if not self.base.isidentifier():
            return bool(self.base)
        return any(name in read_in(each) for each in below if not hasattr(each, "body"))


def through_base(views: JointViews) -> Edits | None:
    """Writes through the tensor that a loop goes over: `for row in x: row += 1` becomes `for k, row in enumerate(x):
    x[k] += 1`."""
    loop, source = _loop(views), None
    if loop is None:
        return None
    found = _iterated(views, loop)
    if found is None:
        return None
    variable, whole, counter, header = found
    source = _without_unbind(views, whole)
    if source is None or any(name in assigned_in(each) for each in loop.body for name in _names_in(whole)):
        return None
    uses = [node for each in loop.body for node in ast.walk(each) if isinstance(node, ast.Name) and node.id == variable]
    augmented = [node.target for each in loop.body for node in ast.walk(each) if isinstance(node, ast.AugAssign)]
    if any(not isinstance(node.ctx, ast.Load) and not any(node is each for each in augmented) for node in uses):
        return None
    return (*header, *(Edit(views.span(node), f"{source}[{counter}]") for node in uses))


def under_no_grad(views: JointViews) -> Edits | None:
    """Puts a loop that only writes into each view of a leaf under `no_grad`."""
    loop, torch = _loop(views), module_name(views.facts, views.file, "torch")
    if loop is None or torch is None or loop.body != [views.write] or loop.orelse:
        return None
    return wrapped(views.facts, views.file, loop.lineno, loop.lineno, f"with {torch}.no_grad():")


def joined_again(views: JointViews) -> Edits | None:
    """Makes new tensors in a loop with one statement, and joins them: `x = torch.stack([row + 1 for row in x])`."""
    loop = _loop(views)
    value = None if loop is None else new_value(views.facts, views.file, views.write)
    torch = imported(views.facts, views.file, "torch")
    if loop is None or value is None or torch is None or len(loop.body) != 1 or loop.body[0] is not views.write:
        return None
    target = target_of(views.write)
    if not isinstance(target, ast.Name) or target.id not in assigned_in(loop.target) or loop.orelse:
        return None
    parts = f"[{value} for {views.text(loop.target)} in {views.text(loop.iter)}]"
    source = loop.iter.args[0] if _is_call(loop.iter, "enumerate") else loop.iter  # type: ignore[attr-defined]
    held = plain_name(source)
    if held is not None and held != views.base:  # a name for the parts: `for part in parts`
        return (Edit(_whole(views, loop), f"{held} = {parts}"),)
    joint = _joint(views, source)
    if joint is None or not _is_own(views):
        return None
    return (*torch[1], Edit(_whole(views, loop), f"{views.base} = {_call(torch[0], joint, parts)}"))


def named_again(views: JointViews) -> Edits | None:
    """Makes new tensors in a loop over names, with one statement: `a, b = [part + 1 for part in (a, b)]`."""
    loops = [
        each for each in views.body() if isinstance(each, ast.For) and each.body == [views.write] and not each.orelse
    ]
    value = new_value(views.facts, views.file, views.write)
    if len(loops) != 1 or value is None:
        return None
    loop, target = loops[0], target_of(views.write)
    names = loop.iter.elts if isinstance(loop.iter, ast.Tuple | ast.List) else []
    if not names or not all(isinstance(each, ast.Name) for each in names):
        return None
    if not isinstance(loop.target, ast.Name) or not isinstance(target, ast.Name) or loop.target.id != target.id:
        return None
    left = ", ".join(ast.unparse(each) for each in names) + ("," if len(names) == 1 else "")
    text = f"{left} = [{value} for {target.id} in {views.text(loop.iter)}]"
    return (Edit(_whole(views, loop), text),)


def as_new_tensors(views: JointViews) -> Edits | None:
    """Makes new tensors of the parts that a function unpacks, or keeps in a list, wherever it writes to one of them."""
    statement = _making(views)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, edits = statement.targets[0], list[Edit]()
    if isinstance(target, ast.Tuple | ast.List) and all(isinstance(each, ast.Name) for each in target.elts):
        names = {each.id for each in target.elts if isinstance(each, ast.Name)}
        joined = f"({', '.join(each.id for each in target.elts if isinstance(each, ast.Name))})"
    elif isinstance(target, ast.Name):
        names, joined = {target.id}, target.id
        if not isinstance(statement.value, ast.List | ast.ListComp) and not views.text(statement.value).startswith(
            "list("
        ):
            edits.append(Edit(views.span(statement.value), f"list({views.text(statement.value)})"))
    else:
        return None
    writes = [each for each in views.body() if each.lineno > statement.lineno and _writes_to(each, names)]
    made = [as_new_tensor(views.facts, views.file, each) for each in writes]
    if not any(each is views.write for each in writes) or not all(made):
        return None
    edits += filter(None, made)
    if not views.is_read_below():
        return tuple(edits)
    rebuilt = _rebuilt(views, statement, writes, joined)
    return None if rebuilt is None else (*edits, *rebuilt)


def _rebuilt(views: JointViews, made: ast.Assign, writes: Iterable[ast.stmt], joined: str) -> Edits | None:
    """Joins the parts again below the last write, in the block that made them."""
    block = block_around(views.facts, views.file, made)
    last = max(writes, key=lambda each: each.lineno)
    around = next((each for each in block if each.lineno <= last.lineno <= (each.end_lineno or 0)), None)
    joint = _joint(views, made.value)
    torch = imported(views.facts, views.file, "torch")
    if around is None or joint is None or torch is None or not _is_own(views):
        return None
    code = f"{views.base} = {_call(torch[0], joint, joined)}"
    edit = inserted_after(views.facts, views.file, around.lineno, code)
    return None if edit is None else (*torch[1], edit)


def _writes_to(statement: ast.stmt, names: set[str]) -> bool:
    place = target_of(statement)
    inner = place.value if isinstance(place, ast.Subscript) else place
    return isinstance(inner, ast.Name) and inner.id in names


def _making(views: JointViews) -> ast.stmt | None:
    """Returns the statement of the write's own function that made the views."""
    span = views.facts.span(views.made.site)
    inside = [
        each
        for each in views.body()
        if span is not None and each.lineno <= span.line <= (each.end_lineno or 0) and not hasattr(each, "body")
    ]
    return inside[-1] if inside and span is not None and span.file == views.file else None


def _loop(views: JointViews) -> ast.For | None:
    """Returns the loop that goes over the views and has the write in its body."""
    span = views.facts.span(views.made.site)
    around = [
        each for each in views.body() if isinstance(each, ast.For) and any(n is views.write for n in ast.walk(each))
    ]
    place = target_of(views.write)
    name = place.id if isinstance(place, ast.Name) else ""
    loops = [each for each in around if name and name in assigned_in(each.target)]
    if not loops or span is None or span.file != views.file:
        return None
    loop = loops[-1]
    is_made_there = loop.iter.lineno <= span.line <= (loop.iter.end_lineno or 0)
    held = plain_name(loop.iter)
    made = _making(views)
    is_held = isinstance(made, ast.Assign) and held is not None and [ast.unparse(t) for t in made.targets] == [held]
    return loop if is_made_there or is_held else None


def _iterated(views: JointViews, loop: ast.For) -> tuple[str, ast.expr, str, Edits] | None:
    """Returns the loop's variable for a view, what it goes over, a counter, and the edits that give it the counter."""
    place = target_of(views.write)
    name = place.id if isinstance(place, ast.Name) else ""
    target, inner, counter = loop.target, loop.iter, ""
    if _is_call(inner, "enumerate") and len(inner.args) == 1 and isinstance(target, ast.Tuple):  # type: ignore[attr-defined]
        first, rest = target.elts[0], target.elts[1:]
        if not isinstance(first, ast.Name) or len(rest) != 1:
            return None
        counter, target, inner = first.id, rest[0], inner.args[0]  # type: ignore[attr-defined]
    whole = _part_for(target, inner, name)
    if whole is None:
        return None
    if counter:
        return name, whole, counter, ()
    used = {node.id for node in ast.walk(views.facts.tree(views.file)) if isinstance(node, ast.Name)}
    free = next((each for each in _NAMES if each not in used), None)
    if free is None:
        return None
    text = views.text(loop.target)
    text = f"({text})" if isinstance(loop.target, ast.Tuple) and not text.startswith("(") else text
    begin, end = views.span(loop.target), views.span(loop.iter)
    header = Edit(begin, f"{free}, {text}"), Edit(end, f"enumerate({views.text(loop.iter)})")
    return name, whole, free, header


def _part_for(target: ast.expr, inner: ast.expr, name: str) -> ast.expr | None:
    """Returns what a loop's variable goes over: the argument of `zip` in its position, or the whole."""
    if isinstance(target, ast.Name):
        return inner if target.id == name else None
    if not isinstance(target, ast.Tuple) or not _is_call(inner, "zip") or inner.keywords:  # type: ignore[attr-defined]
        return None
    pairs = list(zip(target.elts, inner.args, strict=False))  # type: ignore[attr-defined]
    return next((part for one, part in pairs if isinstance(one, ast.Name) and one.id == name), None)


def _without_unbind(views: JointViews, whole: ast.expr) -> str | None:
    """Returns the code of the tensor whose rows a loop goes over: a name, or a place in it that an index gives."""
    inner = whole
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "unbind":
        if inner.args or inner.keywords:
            return None
        inner = inner.func.value
    part = inner
    while isinstance(part, ast.Subscript):
        part = part.value
    is_plain = plain_name(part) is not None and not any(isinstance(node, ast.Call) for node in ast.walk(inner))
    return views.text(inner) if is_plain else None


def _names_in(node: ast.expr) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


def _joint(views: JointViews, value: ast.expr) -> tuple[str, str] | str | None:
    """Returns what joins the parts again: `torch.cat` or `torch.stack`, with the code of the dimension."""
    if plain_name(value) == views.base:
        return "stack"
    if (
        not _is_split_of_base(views, value)
        or not isinstance(value, ast.Call)
        or not isinstance(value.func, ast.Attribute)
    ):
        return None
    name, is_method = value.func.attr, plain_name(value.func.value) == views.base
    arguments = value.args if is_method else value.args[1:]
    position = 0 if name == "unbind" else 1
    given = [keyword.value for keyword in value.keywords if keyword.arg == "dim"] or arguments[position : position + 1]
    dimension = f", dim={views.text(given[0])}" if given else ""
    return ("stack" if name == "unbind" else "cat", dimension)


def _is_split_of_base(views: JointViews, value: ast.expr) -> bool:
    if (
        not isinstance(value, ast.Call)
        or not isinstance(value.func, ast.Attribute)
        or value.func.attr not in _SPLITTING
    ):
        return False
    source = value.func.value
    if plain_name(source) == views.base:
        return True
    return plain_name(source) == "torch" and bool(value.args) and plain_name(value.args[0]) == views.base


def _call(torch: str, joint: tuple[str, str] | str, parts: str) -> str:
    name, dimension = (joint, "") if isinstance(joint, str) else joint
    return f"{torch}.{name}({parts}{dimension})"


def _is_own(views: JointViews) -> bool:
    """Returns whether the function may bind the name of the whole to a new tensor: it is not an argument."""
    site = views.made.site
    return views.base.isidentifier() and not is_argument(views.facts, site, views.base)


def _whole(views: JointViews, statement: ast.stmt) -> Span:
    return views.facts.span_of(statement, views.file)


def _is_call(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name

"""Writes the assignment that detaches what a name carries on: a tensor, or the tensors of a tuple, a list or a dict."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tensorlens.analysis.trace_index import TraceIndex

_ITEM = re.compile(r"(.+?)\[([^\[\]]+)\]")
_LISTS = (ast.List, ast.ListComp)
_DICTS = (ast.Dict, ast.DictComp)
_LITERALS = (*_LISTS, *_DICTS, ast.Tuple)


def detaching(facts: TraceIndex, name: str, names: Sequence[str], file: str, is_pair: bool) -> str | None:
    """Returns `h = h.detach()`, or for `state[0]` the statement that detaches the whole tuple, list or dict.

    `names` are the names of all that is to be detached in a function of a file; `is_pair` says that an LSTM made the
    tuple. None if the kind of the container is not written out, or if the name can't be assigned to.
    """
    match = _ITEM.fullmatch(name)
    if match is None:
        return f"{name} = {name}.detach()" if "[" not in name and is_settable(facts, name) else None
    whole, key = match.groups()
    if "[" in whole or not is_settable(facts, whole):
        return None
    literals = list(_literals(facts, whole, file))
    kinds = {type(value) for value in literals}
    if literals and not all(_holds_tensors(facts, whole, value) for value in literals):
        return _one_by_one(literals, name, names)
    if kinds and kinds <= {*_DICTS}:
        return f"{whole} = {{k: v.detach() for k, v in {whole}.items()}}"
    if kinds and kinds <= {*_LISTS}:
        return f"{whole} = [t.detach() for t in {whole}]"
    if key.isdigit():
        return f"{whole} = tuple(t.detach() for t in {whole})" if is_pair or kinds == {ast.Tuple} else None
    return None if kinds else f"{name} = {name}.detach()"


def _one_by_one(literals: list[ast.expr], name: str, names: Sequence[str]) -> str | None:
    """Detaches one item of a list or dict; of a tuple with other items than tensors, makes a new one."""
    whole = name.rpartition("[")[0]
    if all(isinstance(value, _LISTS + _DICTS) for value in literals):
        return f"{name} = {name}.detach()"
    sizes = {len(value.elts) for value in literals if isinstance(value, ast.Tuple)}
    if len(sizes) != 1 or not all(isinstance(value, ast.Tuple) for value in literals):
        return None
    items = [f"{whole}[{at}]" for at in range(sizes.pop())]
    parts = [f"{each}.detach()" if each in names else each for each in items]
    return f"{whole} = ({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _literals(facts: TraceIndex, name: str, file: str) -> Iterator[ast.expr]:
    """Yields the tuples, lists and dicts that are written out where a name of a file, or an attribute, gets its
    value."""
    last = name.rpartition(".")[2]
    for source, tree in facts.trees():
        for node in ast.walk(tree) if source == file or "." in name else ():
            if isinstance(node, ast.Assign) and isinstance(node.value, _LITERALS):
                if any(getattr(target, "attr" if "." in name else "id", "") == last for target in node.targets):
                    yield node.value


def _holds_tensors(facts: TraceIndex, whole: str, value: ast.expr) -> bool:
    """Returns whether all items of a container, written out, were tensors when the program ended."""
    prefix = f"{whole}["
    inside = {b.name.removeprefix(prefix) for b in facts.trace.end.bindings if b.name.startswith(prefix)}
    if any(each.find("]") != len(each) - 1 for each in inside):
        return False  # a tuple in it, or an object
    if isinstance(value, ast.ListComp):
        return not isinstance(value.elt, ast.Constant)
    if isinstance(value, ast.DictComp):
        return not isinstance(value.value, ast.Constant)
    items = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [])
    plain = any(isinstance(each, ast.Constant | ast.Starred | ast.List | ast.Tuple | ast.Dict) for each in items)
    return not plain and len(items) in (0, len(inside))


def is_settable(facts: TraceIndex, name: str) -> bool:
    """Returns whether code can assign to a name: not if it may be a property, or a field of a frozen class or a named
    tuple."""
    owner, _, last = name.rpartition(".")
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return not owner or not any(_fixes(node, last) for node in nodes)


def _fixes(node: ast.AST, field: str) -> bool:
    """Returns whether a class, or a call of `namedtuple`, has a field that can't be set."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).endswith("namedtuple") and field in re.findall(r"\w+", ast.unparse(node))
    if not isinstance(node, ast.ClassDef):
        return False
    if any(isinstance(each, ast.FunctionDef) and each.name == field for each in node.body):
        return True
    frozen = any("frozen=True" in ast.unparse(each) for each in node.decorator_list)
    named = any(ast.unparse(base).endswith("NamedTuple") for base in node.bases)
    fields = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
    return (frozen or named) and any(isinstance(each, ast.Name) and each.id == field for each in fields)

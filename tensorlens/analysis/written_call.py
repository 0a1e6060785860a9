"""Reads the arguments that the source gives an operation, also where a `partial`, an alias or a module holds it.

`running = partial(torch.logcumsumexp, dim=-1)` gives `running(x)` its `dim`, as `nn.Softmax(dim=1)` does for a module.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.written_numbers import only_value
from tensorlens.records.model import Call, Trace
from tensorlens.records.source import tree_of

_LIBRARY = ("torch", "F", "nn.functional", "torch.nn.functional", "functional", "torch.special")
_MOST = 4  # names that are followed
_Kind = Literal["function", "method", "module"]


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """Holds what the source writes for an operation. `args` has the tensors first for a function, none for a module.

    `is_whole` says whether the source shows what is called, and all arguments; a `**options` of unknown content hides
    some.
    """

    kind: _Kind
    called: ast.expr
    args: tuple[ast.expr, ...]
    keywords: dict[str, ast.expr]
    is_whole: bool = True

    def argument(self, place: int, *names: str) -> ast.expr | None:
        """Returns an argument that has one of some names, or a place among those of the function."""
        named = [self.keywords[name] for name in names if name in self.keywords]
        start = place - {"function": 0, "method": 1, "module": 0}[self.kind]
        placed = self.args[start : start + 1] if start >= 0 else ()
        return next(iter((*named, *placed)), None)


def written_call(facts: TraceIndex, call: Call) -> WrittenCall | None:
    """Returns what the source writes for an operation; None if its place is no call."""
    known = _known(facts.trace)
    if (call.site, call.op) not in known:
        node = facts.node_at(call.site)
        known[call.site, call.op] = _of_node(facts, call, node) if isinstance(node, ast.Call) else None
    return known[call.site, call.op]


@once_per_trace
def _known(trace: Trace) -> dict[tuple[int, str], WrittenCall | None]:
    return {}


def _of_node(facts: TraceIndex, call: Call, node: ast.Call) -> WrittenCall:
    wanted, is_of_tensor = _plain(call.op.rpartition(".")[2]), call.op.startswith("Tensor.")
    args, keywords, is_whole = _given(facts, node)
    called: ast.expr = node.func
    for _ in range(_MOST):
        is_method = is_of_tensor and isinstance(called, ast.Attribute)
        if _plain(last_name(called)) == wanted and (is_method or is_of_library(facts, called)):
            break
        held = _held(facts, called)
        if isinstance(held, ast.Call):
            inner, named, is_known = _given(facts, held)
            if _plain(last_name(held.func)) == wanted and is_of_library(facts, held.func):
                return WrittenCall("module", held.func, inner, named, is_known)
            if last_name(held.func) == "partial" and inner:
                called, args, keywords = inner[0], (*inner[1:], *args), named | keywords
                is_whole &= is_known
                continue
        if not isinstance(held, ast.Name | ast.Attribute):
            called, (args, keywords, _), is_whole = node.func, _given(facts, node), False
            break
        called = held
    is_method = isinstance(called, ast.Attribute) and ast.unparse(called.value) not in _LIBRARY
    return WrittenCall("method" if is_method and is_of_tensor else "function", called, args, keywords, is_whole)


def _plain(name: str) -> str:
    """Returns a name that a function and the class of its module share: `log_softmax` and `LogSoftmax`."""
    return name.replace("_", "").lower()


def is_of_library(facts: TraceIndex, called: ast.expr) -> bool:
    """Returns whether a name begins with one that a file imports from torch, and that the file sets nowhere."""
    root = called
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id in _imported(facts.trace)


@once_per_trace
def _imported(trace: Trace) -> frozenset[str]:
    found = {"torch"}
    for text in trace.sources.values():
        names, is_set = set[str](), set[str]()
        for node in ast.walk(tree_of(text) or ast.Module([], [])):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
                names |= {each.asname or each.name for each in node.names}
            elif isinstance(node, ast.Import):
                roots = ((each, each.name.partition(".")[0]) for each in node.names)
                names |= {each.asname or root for each, root in roots if root == "torch"}
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                is_set.add(node.id)
        found |= names - is_set
    return frozenset(found)


def _given(facts: TraceIndex, node: ast.Call) -> tuple[tuple[ast.expr, ...], dict[str, ast.expr], bool]:
    """Returns the arguments of a call by place and by name, those of `**options` among them, and whether these are
    all."""
    keywords: dict[str, ast.expr] = {}
    is_whole = not any(isinstance(each, ast.Starred) for each in node.args)
    for each in node.keywords:
        if each.arg is not None:
            keywords[each.arg] = each.value
            continue
        options = _options(facts, each.value)
        is_whole &= options is not None
        keywords |= options or {}
    return tuple(node.args), keywords, is_whole


def _options(facts: TraceIndex, node: ast.expr) -> dict[str, ast.expr] | None:
    """Returns the values of a dict that the source writes out, by their keys."""
    value = only_value(facts, last_name(node)) if last_name(node) else node
    if isinstance(value, ast.Call) and last_name(value.func) == "dict" and not value.args:
        return {each.arg: each.value for each in value.keywords if each.arg is not None}
    if not isinstance(value, ast.Dict):
        return None
    pairs = zip(value.keys, value.values, strict=True)
    return {key.value: each for key, each in pairs if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def _held(facts: TraceIndex, called: ast.expr) -> ast.expr | None:
    """Returns what the source stores under a name, an attribute or a key, and what an import calls by another name."""
    if isinstance(called, ast.Call):
        return called
    if isinstance(called, ast.Subscript) and isinstance(called.slice, ast.Constant):
        return (_options(facts, called.value) or {}).get(str(called.slice.value))
    name = last_name(called)
    value = only_value(facts, name) if name else None
    if value is not None or not isinstance(called, ast.Name):
        return value
    aliases = (
        alias
        for _, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch"
        for alias in node.names
    )
    return next((ast.Attribute(ast.Name("torch"), each.name) for each in aliases if each.asname == name), None)

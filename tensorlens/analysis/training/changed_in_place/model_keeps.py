"""Says whether the functions of a model keep or return what its layers have computed, beside its result."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_in_place.hook_keeps import Function, gives_on, is_same, keeping

_JOINING = frozenset("cat concat concatenate stack hstack vstack einsum".split())
_TRACING = frozenset("symbolic_trace create_feature_extractor IntermediateLayerGetter GraphModule timm".split())
_DISPLAYS = ast.Tuple | ast.List | ast.Dict | ast.ListComp | ast.GeneratorExp | ast.DictComp


def _name_of(node: ast.Name | ast.Attribute | ast.alias) -> str:
    return node.name if isinstance(node, ast.alias) else last_name(node)


class ModelCode:
    """The methods of the classes of a program that have a `forward`, without its hooks."""

    def __init__(self, facts: TraceIndex, hooks: set[int]) -> None:
        self._facts = facts
        self._hooks = hooks  # the ids of their syntax trees
        self._is_traced = any(
            isinstance(each, ast.Name | ast.Attribute | ast.alias) and _name_of(each) in _TRACING
            for _, tree in facts.trees()
            for each in ast.walk(tree)
        )
        classes = [(file, node) for file, tree in facts.trees() for node in ast.walk(tree)
                   if isinstance(node, ast.ClassDef)]  # fmt: skip
        self._methods = [
            (file, method)
            for file, node in classes
            if any(isinstance(each, ast.FunctionDef) and each.name == "forward" for each in node.body)
            for method in node.body
            if isinstance(method, ast.FunctionDef) and method.name != "__init__"
        ]

    def keeps(self, sites: Iterable[int]) -> bool:
        """Returns whether one of them, or a function with one of some sites, may keep a result of a layer. So may code
        that a library makes of a model."""
        if self._is_traced:
            return True
        spans = (self._facts.span(site) for site in sites)
        around = [(span.file, found) for span in spans if span is not None
                  if (found := function_around(self._facts, span.file, span.line)) is not None]  # fmt: skip
        functions = {id(function): (file, function) for file, function in (*self._methods, *around)}
        return any(self._keeps(file, function) for file, function in functions.values())

    def _keeps(self, file: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        if id(function) in self._hooks:
            return False
        names, nodes = self._results(function), list(self._nodes(function))
        arguments = {id(given) for node in nodes if isinstance(node, ast.Call) and called_name(node) in _JOINING
                     for given in node.args}  # fmt: skip
        for node in nodes:
            if isinstance(node, _DISPLAYS) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                if id(node) not in arguments and is_same(node, names, views=True):
                    return True
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                if self._is_outer(node) and (
                    is_same(node.value, names, views=True) or isinstance(node.value, ast.Call)
                ):
                    return True
                if isinstance(node.value, ast.Call) and self._makes(node.value, names):
                    return True
            elif isinstance(node, ast.Yield | ast.YieldFrom | ast.Global | ast.Nonlocal):
                return True
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and gives_on(node.value, names):
                if not self._is_recorded(file, node.value):
                    return True
            elif isinstance(node, ast.Return) and isinstance(node.value, ast.Call) and self._makes(node.value, names):
                return True
        return any(id(node) in {id(each) for each in nodes} for node in keeping(function, names, views=True))

    def _nodes(self, function: Function) -> Iterator[ast.AST]:
        """Yields the parts of a function, without the hooks that it defines."""
        found: list[ast.AST] = list(function.body) if isinstance(function.body, list) else [function.body]
        while found:
            node = found.pop()
            if id(node) not in self._hooks:
                yield node
                found += ast.iter_child_nodes(node)

    def _results(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
        """Returns the variables of a function that may be results of layers: its arguments, and results of calls."""
        given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        names = {each.arg for each in given} - {"self", "cls"}
        for node in self._nodes(function):
            if isinstance(node, ast.Assign | ast.NamedExpr) and not isinstance(node.value, ast.Constant):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {part.id for each in targets for part in ast.walk(each) if isinstance(part, ast.Name)}
        return names - {"self", "cls"}

    @staticmethod
    def _is_outer(node: ast.Assign | ast.AnnAssign) -> bool:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(each, ast.Attribute | ast.Subscript) for each in targets)

    def _is_recorded(self, file: str, node: ast.Call) -> bool:
        span = self._facts.span_of(node, file)
        return any(site.span == span for site in self._facts.trace.sites)

    @staticmethod
    def _makes(call: ast.Call, names: set[str]) -> bool:
        """Returns whether a call makes an object of some results: `dict(features=x)` or `Output(logits, x)`."""
        name = last_name(call.func)
        if not isinstance(call.func, ast.Name) or not (name[:1].isupper() or name in ("dict", "tuple", "list")):
            return False
        return any(is_same(given, names, views=True) for given in (*call.args, *(k.value for k in call.keywords)))

"""Recognizes source that makes a call which the trace has whenever the source runs: a method that only tensors have, or
a function of torch.

`max(p.shape)`, `math.log(p.numel())` and `float(module.p)` compute with plain numbers, so they leave no call.
"""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex

_WITHOUT_OTHERS = frozenset(  # methods of tensors that take numbers at most
    "norm pow square abs exp log sigmoid t chunk det logdet svd relu softmax".split()
)
_WITH_OTHERS = frozenset("matmul mm log_prob".split())
_OF_ARRAYS_TOO = frozenset("sum mean max min flatten view reshape dot float std var".split())
_FUNCTIONS = _WITHOUT_OTHERS | _WITH_OTHERS | (_OF_ARRAYS_TOO - {"float", "view"})
_ONLY_FUNCTIONS = frozenset("eye svdvals vector_norm matrix_norm".split())
_TENSORS = frozenset("weight bias data grad".split())  # attributes of modules and parameters


def makes_tensor_call(facts: TraceIndex, node: ast.AST, file: str, tensors: frozenset[str] = frozenset()) -> bool:
    """Returns whether a call is one of these; `tensors` are names of parameters."""
    if not isinstance(node, ast.Call) or _is_own(facts, called_name(node)):
        return False
    name, function = called_name(node), node.func
    if name in _FUNCTIONS | _ONLY_FUNCTIONS and _root(function) in _torch_names(facts.tree(file)):
        return bool(node.args or node.keywords)
    if not isinstance(function, ast.Attribute) or facts.names.syntax.is_imported(function, file):
        return False
    if name in _OF_ARRAYS_TOO:
        return _is_tensor(function.value, tensors)
    return name in _WITH_OTHERS or (name in _WITHOUT_OTHERS and all(map(_is_number, node.args)))


def _is_own(facts: TraceIndex, name: str) -> bool:
    """Returns whether the script has a function or a class with a name."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return any(isinstance(node, kinds) and node.name == name for _, tree in facts.trees() for node in ast.walk(tree))


def _is_tensor(node: ast.expr, tensors: frozenset[str]) -> bool:
    if isinstance(node, ast.Subscript):
        return _is_tensor(node.value, tensors)
    return (
        node.id in tensors if isinstance(node, ast.Name) else isinstance(node, ast.Attribute) and node.attr in _TENSORS
    )


def _is_number(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _torch_names(tree: ast.Module) -> set[str]:
    """Returns the names that a file gives to torch, its modules and its functions."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            of_torch = [each for each in node.names if each.name.partition(".")[0] == "torch"]
        elif isinstance(node, ast.ImportFrom):
            of_torch = node.names if (node.module or "").partition(".")[0] == "torch" else []
        else:
            continue
        found |= {each.asname or each.name.partition(".")[0] for each in of_torch}
    return found

"""Completes the text that people type for an operand: `reshape(-1)` -> `x.reshape(-1)`, `copy_` -> a whole call."""

from __future__ import annotations

import ast
import builtins
from typing import Any

import torch

from tensorlens.compare.probe.code import PARAMETERS, namespace

# Calls for names whose plain call would not show what a user wants to know. Operations that people compare with each
# other get arguments with which they do the same.
MEANT = {
    "copy_": "torch.empty_like(x).copy_(x)",
    "to": "x.to(dtype)",
    "type": "x.type(dtype)",
    "masked_fill": "x.masked_fill(x > 0.3, 0)",
    "masked_fill_": "x.masked_fill_(x > 0.3, 0)",
    "where": "torch.where(x > 0.3, 0, x)",
    "torch.where": "torch.where(x > 0.3, 0, x)",
    **{name: f"x.{name}(0, x.argsort(0)[:2], y)" for name in ("scatter", "scatter_", "scatter_add", "scatter_add_")},
    "gather": "x.gather(0, x.argsort(0))",
    "take_along_dim": "x.take_along_dim(x.argsort(0), 0)",
    **{
        name: f"x.{name}(0, torch.tensor([0, 1]), y[:2])"
        for name in ("index_add", "index_add_", "index_copy", "index_copy_")
    },
    "index_put": "x.index_put((torch.tensor([0, 1]),), y[:2])",
    "index_put_": "x.index_put_((torch.tensor([0, 1]),), y[:2])",
    "as_strided": "x.as_strided((2, 2), (1, 1))",
    "unfold": "x.unfold(0, 2, 1)",
    "new_tensor": "x.new_tensor([1., 2.])",
    "lerp": "x.lerp(y, 0.5)",
    "lerp_": "x.lerp_(y, 0.5)",
    "split": "x.split(2)",
    "torch.split": "torch.split(x, 2)",
    "chunk": "x.chunk(2)",
    "torch.chunk": "torch.chunk(x, 2)",
    "backward": "x.sum().backward()",
    "autograd.backward": "torch.autograd.backward(x.sum())",
    "torch.autograd.backward": "torch.autograd.backward(x.sum())",
    "autograd.grad": "torch.autograd.grad(x.sum(), x)",
    "torch.autograd.grad": "torch.autograd.grad(x.sum(), x)",
    "from_numpy": "torch.from_numpy(x.detach().numpy())",
    "torch.from_numpy": "torch.from_numpy(x.detach().numpy())",
    "zero_grad": "x.sum().backward(); torch.optim.SGD([x]).zero_grad()",
    "optimizer.zero_grad": "x.sum().backward(); torch.optim.SGD([x]).zero_grad()",
    "Parameter": "nn.Parameter(x)",
    "nn.Parameter": "nn.Parameter(x)",
    "torch.nn.Parameter": "torch.nn.Parameter(x)",
    "deepcopy": "copy.deepcopy(x)",
    "copy.copy": "copy.copy(x)",
    "copy.deepcopy": "copy.deepcopy(x)",
}
SHAPES = {
    "split": (6, 2),
    "chunk": (6, 2),
    "torch.split": (6, 2),
    "torch.chunk": (6, 2),
}  # with 6 rows, 2 pieces (`chunk`) differ from pieces of 2 (`split`)


def completed(text: str) -> str:
    """Completes an operand: `reshape(-1)` gets its `x.`, `relu(x)` its `torch.`; others are returned unchanged.

    Raises:
        SyntaxError: it is not Python code.
    """
    tree = ast.parse(text, "<operand>", "exec")
    names = {node.id: node.ctx for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {
        (each.asname or each.name).split(".")[0]
        for node in ast.walk(tree)
        for each in getattr(node, "names", [])
        if isinstance(each, ast.alias)
    }
    completer = _Completer(bound, names_x="x" in names)
    tree = completer.visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree)) if completer.changed else text


class _Completer(ast.NodeTransformer):
    def __init__(self, bound: set[str], names_x: bool) -> None:
        self._bound, self._names_x = bound, names_x
        self.changed = False

    def visit_Call(self, node: ast.Call) -> Any:
        owner = None
        if isinstance(node.func, ast.Name) and not self._is_defined(node.func.id):
            takes_x = any(isinstance(each, ast.Name) and each.id == "x" for each in node.args)
            owner = None if takes_x or not hasattr(torch.Tensor, node.func.id) else "x"
            if owner:
                self.changed = True
                node.func = ast.Attribute(ast.Name("x", ast.Load()), node.func.id, ast.Load())
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        if self._is_defined(node.id) or not isinstance(node.ctx, ast.Load):
            return node
        for path, module in (("torch", torch), ("F", torch.nn.functional), ("nn", torch.nn)):
            if hasattr(module, node.id):
                self.changed = True
                return ast.Attribute(ast.Name(path, ast.Load()), node.id, ast.Load())
        if node.id == "deepcopy":
            self.changed = True
            return ast.parse("copy.deepcopy", mode="eval").body
        return node

    def _is_defined(self, name: str) -> bool:
        if name in self._bound or name in PARAMETERS or name in namespace():
            return True
        return hasattr(builtins, name) and (self._names_x or not hasattr(torch.Tensor, name))

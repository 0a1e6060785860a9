"""Compiles an operand: Python code with `x` and `y`. Its value, or what it assigned last, is the result."""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib
import math
import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from tensorlens.compare.probe.inputs import Subject
from tensorlens.errors import UsageError

PARAMETERS = ("x", "y", "dtype", "device")


class Code:
    """An operand's code as a function of a subject. The code may use `x`, `y`, `dtype` (not that of x), `device` and
    the names of `namespace`."""

    def __init__(self, text: str, extra: dict[str, Any] | None = None) -> None:
        tree = ast.parse(text, "<operand>", "exec")
        self.uses_y = any(isinstance(node, ast.Name) and node.id == "y" for node in ast.walk(tree))
        names = {**namespace(), **(extra or {})}
        self.function: Callable[..., Any] = _function(tree, names)

    def __call__(self, subject: Subject) -> Any:
        return self.function(*self.arguments(subject))

    def arguments(self, subject: Subject) -> tuple[Any, ...]:
        """Returns the arguments for `function`."""
        other = torch.float32 if subject.x.dtype == torch.float64 else torch.float64
        return subject.x, subject.y, other, subject.x.device


@cache
def namespace() -> dict[str, Any]:
    """Returns the modules that an operand may use, by name."""
    names: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "optim": torch.optim}
    names |= {"copy": copy, "math": math}
    with contextlib.suppress(ImportError):
        numpy = importlib.import_module("numpy")
        names |= {"np": numpy, "numpy": numpy}
    return names


def loaded(path: Path, function: str) -> Callable[..., Any]:
    """Runs a script file, as an import would, and returns one of its functions.

    Raises:
        UsageError: the file has no such function.
    """
    value = runpy.run_path(str(path), run_name=path.stem).get(function)
    if callable(value):
        return value  # type: ignore[no-any-return]
    raise UsageError(f"{path} has no function {function}")


def _function(tree: ast.Module, names: dict[str, Any]) -> Callable[..., Any]:
    _return_result(tree.body)
    holder = ast.parse(f"def operand({', '.join(PARAMETERS)}): pass")
    definition = holder.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.body = tree.body
    exec(compile(ast.fix_missing_locations(holder), "<operand>", "exec"), names)
    return names["operand"]  # type: ignore[no-any-return]


def _return_result(body: list[ast.stmt]) -> None:
    """Makes the code return its last expression, its last assigned name, or `x`."""
    last = body[-1] if body else ast.Pass()
    if isinstance(last, ast.With):
        _return_result(last.body)
    elif isinstance(last, ast.Expr):
        body[-1] = ast.Return(last.value)
    elif isinstance(last, ast.AugAssign):
        body.append(ast.Return(ast.parse(ast.unparse(last.target), mode="eval").body))
    elif isinstance(last, ast.Assign) and isinstance(last.targets[-1], ast.Name):
        body.append(ast.Return(ast.Name(last.targets[-1].id, ast.Load())))
    elif not isinstance(last, ast.Return):
        body.append(ast.Return(ast.Name("x", ast.Load())))

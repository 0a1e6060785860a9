"""Makes the edit that imports a module into a file which does not import it yet."""

from __future__ import annotations

import ast

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import module_name
from tensorlens.records.model import Span
from tensorlens.records.report import Edit
from tensorlens.records.source import line_at, tree_of


def imported(facts: TraceIndex, file: str, module: str) -> tuple[str, tuple[Edit, ...]] | None:
    """Returns the name of a module in a file, with the edit that imports it there if the file does not.

    None if the file is not known, or uses the name for something else.
    """
    name, tree = module_name(facts, file, module), tree_of(facts.trace.sources.get(file, ""))
    if name is not None:
        return name, ()
    if tree is not None and any(_imports_below(node, module) for node in tree.body):
        return module, ()
    if tree is None or not tree.body or any(_binds(node, module) for node in ast.walk(tree)):
        return None
    first = tree.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return module, (_below(facts, file, _last_future(tree) or first, module),)
    future = _last_future(tree)
    if future is not None:
        return module, (_below(facts, file, future, module),)
    top = min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", []))])
    gap = "" if isinstance(first, ast.Import | ast.ImportFrom) else "\n\n"
    return module, (Edit(Span(file, top, 0, top, 0), f"import {module}\n{gap}"),)


def _imports_below(statement: ast.stmt, module: str) -> bool:
    """Returns whether a statement is `import torch.nn`, which gives `torch` its meaning too."""
    names = statement.names if isinstance(statement, ast.Import) else []
    return any(alias.asname is None and alias.name.startswith(f"{module}.") for alias in names)


def _last_future(tree: ast.Module) -> ast.stmt | None:
    found = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    return found[-1] if found else None


def _below(facts: TraceIndex, file: str, statement: ast.stmt, module: str) -> Edit:
    last = statement.end_lineno or statement.lineno
    column = len(line_at(facts.trace.sources[file], last))
    return Edit(Span(file, last, column, last, column), f"\nimport {module}")


def _binds(node: ast.AST, name: str) -> bool:
    """Returns whether a node of a tree gives a name a meaning of its own."""
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.arg):
        return node.arg == name
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == name
    return isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and node.name == name

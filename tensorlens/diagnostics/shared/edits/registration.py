"""Makes the edit that registers what a module keeps in a list, a dictionary or a plain attribute."""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import inserted_after, module_name
from tensorlens.records.report import Edit


def registered(facts: TraceIndex, module: str, name: str, is_parameter: bool) -> Edit | None:
    """Wraps what a class assigns to an attribute: `self.hidden = [...]` becomes `self.hidden = nn.ModuleList([...])`.

    `name` is the name of one of the tensors, `hidden[0].weight`; `is_parameter` is False for a plain tensor. None if
    the class has no such assignment or several, or if the attribute is inside another.
    """
    attribute, _, inside = name.partition("[")
    if "." in attribute:
        return None
    for file, tree in facts.trees():
        values = _assigned(tree, module, attribute)
        prefix = module_name(facts, file, "torch.nn") or _below(module_name(facts, file, "torch"))
        if len(values) != 1 or prefix is None:
            continue
        kind, span = _kind(values[0], inside, is_parameter), facts.span_of(values[0], file)
        if kind is None and isinstance(values[0], ast.DictComp) and "]." in inside:  # whose keys are no strings
            own = f"self.{attribute}_modules = {prefix}.ModuleList(self.{attribute}.values())"
            return inserted_after(facts, file, span.line, own)
        if kind is None:
            return None
        return Edit(span, f"{prefix}.{kind}({facts.code_of(values[0], file)})")
    return None


def _below(torch: str | None) -> str | None:
    return None if torch is None else f"{torch}.nn"


def _kind(value: ast.expr, inside: str, is_parameter: bool) -> str | None:
    """Returns the class that holds the value: "ModuleList", "ParameterDict", "Parameter"."""
    if not inside:
        return None if is_parameter else "Parameter"
    held = "Module" if "]." in f"[{inside}" else "Parameter"
    if held == "Parameter" and not is_parameter:
        return None  # a list of plain tensors would need a parameter for each
    if isinstance(value, ast.List | ast.ListComp | ast.Tuple) or _called(value) in ("list", "tuple"):
        return f"{held}List"
    keys = inside.startswith(("'", '"')) and "." not in inside.partition("]")[0]
    if (isinstance(value, ast.Dict | ast.DictComp) or _called(value) == "dict") and keys:
        return f"{held}Dict"
    return None


def _called(value: ast.expr) -> str | None:
    return plain_name(value.func) if isinstance(value, ast.Call) else None


def _assigned(tree: ast.Module, module: str, attribute: str) -> list[ast.expr]:
    """Returns the values that a class assigns to an attribute of its objects."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == module)
    return [
        node.value
        for found in classes
        for node in ast.walk(found)
        if isinstance(node, ast.Assign) and [plain_name(target) for target in node.targets] == [f"self.{attribute}"]
    ]

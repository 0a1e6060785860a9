"""Finds totals to which every round adds, and that no line starts again: `self.sum += loss` in a meter, say."""

from __future__ import annotations

import ast

from tensorlens.analysis.carried import Carried
from tensorlens.analysis.code_around import (
    class_around,
    function_around,
    loop_around_line,
    method_of,
    scope_around,
    statement_at,
)
from tensorlens.analysis.naming.assignments import assigned_pairs
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import inserted_after
from tensorlens.diagnostics.shared.wording import fix
from tensorlens.records.model import Span
from tensorlens.records.report import Fix


def is_total(facts: TraceIndex, each: Carried) -> bool:
    """Returns whether one line both made a carried tensor and added to it, as `self.sum += loss` does."""
    return each.made.site == each.use.site and _addition(facts, each) is not None


def counted_with(facts: TraceIndex, each: Carried) -> list[str]:
    """Lists what the function of a total also adds to, in the same object: the number of entries.

    Where the total is a variable, these are the variables that a line reads together with it, as `total / count` does.
    """
    place, added = facts.trace.sites[each.made.site].span, _addition(facts, each)
    scope = scope_around(facts, place.file, place.line)
    if not isinstance(added, ast.AugAssign):
        return []
    others = [node.target for node in ast.walk(scope) if isinstance(node, ast.AugAssign)]
    if isinstance(added.target, ast.Attribute):
        owner, own = ast.unparse(added.target.value), added.target.attr
        found = [n.attr for n in others if isinstance(n, ast.Attribute) and ast.unparse(n.value) == owner]
    else:
        own = ast.unparse(added.target)
        divisions = [node for node in ast.walk(scope) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)]
        read = [{part.id for part in ast.walk(node) if isinstance(part, ast.Name)} for node in divisions]
        found = [n.id for n in others if isinstance(n, ast.Name) and any({own, n.id} <= names for names in read)]
    return list(dict.fromkeys(name for name in found if name != own))


def started_again(facts: TraceIndex, span: Span, names: tuple[str, ...], found: list[Carried]) -> Fix | None:
    """Starts a total and its count again below the line at `span`, where the function has `names` for the total.

    None if nothing is counted with it: it is enough to detach it then.
    """
    totals = [each for each in found if is_total(facts, each)]
    counts = list(dict.fromkeys(name for each in totals for name in counted_with(facts, each)))
    if not counts or len(totals) != len(found) or len(names) != 1:
        return None
    owner, _, last = names[0].rpartition(".")
    shown = " and ".join(f"`{owner}.{name}`" if owner else f"`{name}`" for name in (last, *counts))
    title = f"{shown} still count what earlier passes have used: start them again below this line"
    place = facts.trace.sites[totals[0].made.site].span
    holder = class_around(facts, place.file, place.line)
    starts = {} if holder is None else _constants(method_of(holder, "__init__"))
    if not owner or holder is None or not {last, *counts} <= starts.keys() or _is_read_behind(facts, span, owner):
        return fix(title, place=span)
    method = _resetting(holder, {name: starts[name] for name in (last, *counts)})
    code = (
        f"{owner}.{method}()" if method else "\n".join(f"{owner}.{name} = {starts[name]}" for name in (last, *counts))
    )
    edit = inserted_after(facts, span.file, span.line, code)
    return fix(title, *(edit,) if edit else (), place=span)


def _addition(facts: TraceIndex, each: Carried) -> ast.stmt | None:
    """Returns the statement that adds to a carried tensor: `self.sum += value`."""
    place = facts.trace.sites[each.made.site].span
    statement = statement_at(facts, place.file, place.line)
    is_addition = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add)
    return statement if is_addition else None


def _constants(function: ast.FunctionDef | None) -> dict[str, str]:
    """Returns the constants that a function assigns to attributes of `self`, each as written."""
    found: dict[str, str] = {}
    for statement in function.body if function is not None else ():
        for target, value in assigned_pairs(statement) if isinstance(statement, ast.Assign) else ():
            if isinstance(value, ast.Constant) and (plain_name(target) or "").partition(".")[0] == "self":
                found[(plain_name(target) or "").partition(".")[2]] = ast.unparse(value)
    return found


def _resetting(holder: ast.ClassDef, starts: dict[str, str]) -> str:
    """Returns the method that gives attributes their first values and does nothing else; "" if there is none."""
    for each in holder.body:
        if isinstance(each, ast.FunctionDef) and each.name != "__init__" and len(each.args.args) == 1:
            plain = all(isinstance(part, ast.Assign) for part in each.body) and not each.decorator_list
            if plain and _constants(each) == starts:
                return each.name
    return ""


def _is_read_behind(facts: TraceIndex, span: Span, owner: str) -> bool:
    """Returns whether the function, or its loop, uses an object behind a line."""
    scope = function_around(facts, span.file, span.line)
    around = loop_around_line(facts, span.file, span.line)
    used = [
        node for node in ast.walk(scope or around or ast.Module([], [])) if getattr(node, "lineno", 0) > span.end_line
    ]
    return any(isinstance(node, ast.expr) and plain_name(node) == owner for node in used)

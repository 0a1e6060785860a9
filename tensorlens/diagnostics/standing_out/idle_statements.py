"""Names statements that do nothing: methods that are not called, comparisons, and misspelled flags."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_METHODS = frozenset(("eval", "train", "zero_grad", "requires_grad_", "detach_", "unscale_"))
_FLAG = "requires_grad"
_COMPARED = frozenset((_FLAG, "grad", "lr", "training"))
_CLOSE = 0.9  # of `require_grad` to `requires_grad` it is 0.96


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if not training.measured.passes:
        return
    defined, read = _defined_and_read(facts)
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            text = _idle(node, defined) or _misspelled(node, defined | read)
            if text:
                span = facts.span_of(node, file)
                yield stands_out(f"`{facts.code_of(node, file)}` {text}", Label("observed_here", span, "written here"))


def _defined_and_read(facts: TraceIndex) -> tuple[set[str], set[str]]:
    """Returns the names of functions that the program defines, and the attributes and strings that it reads."""
    defined: set[str] = set()
    read: set[str] = set()
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            read.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            read.add(node.value)
    return defined, read


def _idle(node: ast.AST, defined: set[str]) -> str:
    """Says what an expression leaves undone whose value the statement drops. A name that the program defines itself may
    be a property."""
    value = node.value if isinstance(node, ast.Expr) else None
    if isinstance(value, ast.Attribute) and value.attr in _METHODS and value.attr not in defined:
        return "names a method and does not call it: a statement without parentheses changes nothing"
    if not isinstance(value, ast.Compare) or len(value.ops) != 1 or not isinstance(value.ops[0], ast.Eq):
        return ""
    left, right = value.left, value.comparators[0]
    name = left.attr if isinstance(left, ast.Attribute) else _key(left)
    if name in _COMPARED and name not in defined and isinstance(right, ast.Constant):
        return "compares, and drops the result: an assignment is written with one `=`"
    return ""


def _key(node: ast.expr) -> str:
    key = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
    return key if isinstance(key, str) else ""


def _misspelled(node: ast.AST, known: set[str]) -> str:
    """Says which flag an assignment misses by a letter or two, if no line reads the attribute that it sets."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if not isinstance(target, ast.Attribute) or not isinstance(node.value, ast.Constant):  # type: ignore[attr-defined]
        return ""
    name, is_own = target.attr, isinstance(target.value, ast.Name) and target.value.id == "self"
    if name == _FLAG or name in known or is_own or SequenceMatcher(None, name, _FLAG).ratio() < _CLOSE:
        return ""
    return f"writes to `{name}`, which no line of the program reads: the flag of a tensor is called `{_FLAG}`"

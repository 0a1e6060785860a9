"""Names statements that do nothing: methods that are not called, comparisons, and misspelled flags."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.statements.unmet_choices import unmet_choices
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import one_line, text_of

_METHODS = frozenset(("eval", "train", "zero_grad", "requires_grad_", "detach_", "unscale_"))
_FLAG = "requires_grad"
_COMPARED = frozenset((_FLAG, "grad", "lr", "training"))
_PURE = frozenset("clone detach to float double half cpu cuda add sub mul div lerp clamp deepcopy".split())
_CONTEXTS = frozenset(("no_grad", "enable_grad", "inference_mode", "autocast"))
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
            elif isinstance(node, ast.Assign) and _is_turned(facts, node, file):
                text = f"`{facts.code_of(node.targets[0], file)} =+ ...` assigns a new value: `+=` adds"
                yield stands_out(text, Label("replaced_here", facts.span_of(node, file), "what it had is dropped"))
            elif isinstance(node, ast.For):
                yield from _loop(facts, node, file)
    yield from _unmet(training)


def _is_turned(facts: TraceIndex, node: ast.Assign, file: str) -> bool:
    """Returns whether an assignment of a tensor is written `=+`, to a name that another statement sets before it."""
    target, source = node.targets[0], facts.code_of(node, file)
    after = source[len(facts.code_of(target, file)) :].lstrip() if len(node.targets) == 1 else ""
    if not after.startswith("=+") or not isinstance(target, ast.Name):
        return False
    scope = function_around(facts, file, node.lineno) or facts.tree(file)
    stored = (each for each in ast.walk(scope) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    is_set_before = any(each.id == target.id and each.lineno < node.lineno for each in stored)
    span = facts.span_of(node, file)
    return is_set_before and any(_is_on(site.span, span) for site in facts.trace.sites)


def _loop(facts: TraceIndex, loop: ast.For, file: str) -> Iterator[StandingOut]:
    """Finds statements of a loop over parameters that only rename, and a choice by name that chooses none."""
    source = facts.code_of(loop.iter, file)
    if source.endswith(".param_groups"):
        yield from _groups(facts, loop, file)
        return
    if not any(f".{method}(" in source for method in ("parameters", "named_parameters", "state_dict")):
        return
    for statement in _renaming(loop):
        span = facts.span_of(statement, file)
        name = statement.targets[0].id  # type: ignore[attr-defined]
        text = f"`{facts.code_of(statement, file)}` only sets the variable `{name}`, and changes no parameter"
        yield stands_out(text, Label("observed_here", span, "written here"))


def _groups(facts: TraceIndex, loop: ast.For, file: str) -> Iterator[StandingOut]:
    """Finds statements of a loop over parameter groups that compute an option, and leave the groups as they are."""
    scope = function_around(facts, file, loop.lineno) or facts.tree(file)
    read = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    variables = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    for place, statement in enumerate(loop.body):
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(target, ast.Name) or not isinstance(statement, ast.Assign):
            continue
        later = {n.id for each in loop.body[place + 1 :] for n in ast.walk(each) if isinstance(n, ast.Name)}
        of_group = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)} & variables
        unread = target.id not in (later if target.id in variables else read)
        if of_group and unread and not any(isinstance(n, ast.Call) for n in ast.walk(statement.value)):
            text = f"`{facts.code_of(statement, file)}` only sets the variable `{target.id}`, and changes no group"
            yield stands_out(text, Label("observed_here", facts.span_of(statement, file), "written here"))


def _renaming(loop: ast.For) -> Iterator[ast.Assign]:
    """Yields assignments of a computed value to a variable of the loop that nothing in the loop reads afterwards.

    A call may change what it is given, but for a few methods.
    """
    variables = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    for place, statement in enumerate(loop.body):
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(target, ast.Name) or target.id not in variables:
            continue
        assert isinstance(statement, ast.Assign)
        later = {node.id for each in loop.body[place + 1 :] for node in ast.walk(each) if isinstance(node, ast.Name)}
        if target.id not in later and _is_pure(statement.value):
            yield statement


def _is_pure(value: ast.expr) -> bool:
    """Returns whether an expression computes with a variable, and calls only methods that change nothing."""
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    has_name = any(isinstance(node, ast.Name) for node in ast.walk(value))
    return has_name and all(isinstance(call.func, ast.Attribute) and call.func.attr in _PURE for call in calls)


def _unmet(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds flags that are set below a condition on names which holds for no parameter, or for each one to skip."""
    facts = training.facts
    if not is_complete(facts.trace) or facts.trace.inspection.switches:
        return
    for each in unmet_choices(facts, [row.name for row in training.rows]):
        sets, test = (one_line(text_of(facts.trace.sources[span.file], span), 60) for span in (each.sets, each.test))
        part = "module of the loop that has parameters" if each.of_modules else "parameter of the loop"
        text = f"`{sets}` never runs: `{test}` holds for {'each' if each.skips else 'no'} {part}"
        never = "always true" if each.skips else "never true"
        yield stands_out(
            text, Label("observed_here", each.sets, "does not run"), Label("observed_here", each.test, never)
        )


def _is_on(one: Span | None, other: Span) -> bool:
    return one is not None and one.file == other.file and other.line <= one.line <= other.end_line


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
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and _is_torchs_context(value.func):
        return "makes a context, and no `with` enters it: the lines below run as if it were not there"
    if not isinstance(value, ast.Compare) or len(value.ops) != 1 or not isinstance(value.ops[0], ast.Eq):
        return ""
    left, right = value.left, value.comparators[0]
    name = left.attr if isinstance(left, ast.Attribute) else _key(left)
    if name in _COMPARED and name not in defined and isinstance(right, ast.Constant):
        return "compares, and drops the result: an assignment is written with one `=`"
    return ""


def _is_torchs_context(function: ast.Attribute) -> bool:
    return function.attr in _CONTEXTS and ast.unparse(function.value).partition(".")[0] == "torch"


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

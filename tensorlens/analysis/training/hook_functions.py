"""Finds the functions of the hooks of a program, and the calls that run inside them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tensorlens.analysis.code_around import first_line, function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.callbacks import Registration
from tensorlens.records.model import Call

Definition = tuple[str, ast.FunctionDef | ast.Lambda]  # the file that has it


def in_hooks(facts: TraceIndex, calls: Iterable[Call], kind: str) -> Iterator[Call]:
    """Yields those of some calls whose line is in a function that the program registered as a hook of a kind, or that
    are such a hook themselves."""
    defined, whole = _defined(facts, kind), hooks_without_lines(facts, kind)
    for call in calls if defined or whole else ():
        if any(access.tensor in whole for access in call.outputs) or _places(facts, call) & defined.keys():
            yield call


def registration_around(facts: TraceIndex, call: Call, kind: str) -> Registration | None:
    """Returns the first registration of the hook whose function has the line of a call."""
    defined = _defined(facts, kind)
    return next((defined[place] for place in _places(facts, call) if place in defined), None)


def hook_sites(facts: TraceIndex, *kinds: str) -> set[int]:
    """Returns the sites whose line is in a function that the program registered as a hook of some kinds."""
    defined = set[tuple[str, int]]().union(*(_defined(facts, kind) for kind in kinds))
    return {site.id for site in facts.trace.sites if _places_of(facts, site.id) & defined} if defined else set()


def definition_of(facts: TraceIndex, number: int) -> Definition | None:
    """Returns the file and the definition of a callback: that at the place where it is defined."""
    defined = facts.trace.callbacks.functions[number]
    span = facts.span(defined.defined)
    if span is None:
        return None
    for node in ast.walk(facts.tree(span.file)):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and span.line in (node.lineno, _first_line(node)):
            name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
            if name == defined.name.rpartition(".")[2]:
                return span.file, node
    return None


def _first_line(node: ast.FunctionDef | ast.Lambda) -> int:
    return node.body.lineno if isinstance(node, ast.Lambda) else first_line(node)


def _defined(facts: TraceIndex, kind: str) -> dict[tuple[str, int], Registration]:
    """Maps the lines that define hooks of a kind to the first registration of each."""
    callbacks, found = facts.trace.callbacks, dict[tuple[str, int], Registration]()
    functions = {each.id: facts.span(each.defined) for each in callbacks.functions}
    for each in callbacks.registrations:
        span = functions.get(each.function) if each.kind == kind else None
        if span is not None:
            found.setdefault((span.file, span.line), each)
    return found


def _places(facts: TraceIndex, call: Call) -> set[tuple[str, int]]:
    """Returns the line of a call, where a lambda is defined, and that of the function around it."""
    return _places_of(facts, call.site)


def _places_of(facts: TraceIndex, site: int) -> set[tuple[str, int]]:
    span = facts.span(site)
    function = None if span is None else function_around(facts, span.file, span.line)
    lines = () if span is None else (span.line,) if function is None else (span.line, function.lineno)
    return set() if span is None else {(span.file, line) for line in lines}


def hooks_without_lines(facts: TraceIndex, kind: str) -> dict[int, Registration]:
    """Maps what hooks of a kind have returned that are no function of the program, as `partial(torch.mul, mask)`, to
    their registrations."""
    callbacks = facts.trace.callbacks
    outside = {each.id for each in callbacks.functions if each.defined is None}
    found = {each.id: each for each in callbacks.registrations if each.kind == kind and each.function in outside}
    runs = (run for run in callbacks.runs if run.registration in found) if found else ()
    return {
        value.tensor: found[run.registration] for run in runs for value in run.values[:1] if value.tensor is not None
    }

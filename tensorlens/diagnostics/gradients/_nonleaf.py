"""Explains why a computed tensor keeps no gradient, and suggests how to read the one that is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import statement_at
from tensorlens.analysis.lineage import leaf_origin, leaves_above
from tensorlens.analysis.naming.code_text import OPERATORS
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import inserted_after
from tensorlens.diagnostics.shared.wording import fix, named, with_method
from tensorlens.records.model import Call, Span
from tensorlens.records.report import Edit, Fix


@dataclass(frozen=True, slots=True)
class _Rebound:
    """An assignment that gave the name of a leaf to a result, with the lines that made the result and the leaf."""

    name: str
    made: Call
    line: int
    leaf_line: int


def nonleaf_reason(facts: TraceIndex, number: int | None, at: int) -> str:
    """Explains why the `.grad` of a computed tensor is None."""
    rebound = None if number is None else _rebound(facts, number, at)
    if rebound is None:
        return "backward keeps gradients only in leaves: it passes the gradient of what is computed on, and drops it"
    return (
        f"line {rebound.line} gave the name `{rebound.name}` of the leaf from line {rebound.leaf_line} to a result, "
        "and backward keeps gradients only in leaves"
    )


def nonleaf_fixes(facts: TraceIndex, number: int | None, at: int) -> Iterator[Fix]:
    """Suggests how to get the gradient.

    If the tensor took the name of its leaf, it does not suggest `retain_grad()`, which would keep the gradient of the
    wrong tensor.
    """
    if number is None:
        return
    rebound = _rebound(facts, number, at)
    if rebound is None:
        made = next(iter(facts.producers(number, at)), None)
        keep = with_method(named(facts, number, at), "retain_grad()")
        place = None if made is None else _naming_line(facts, made, number, at)
        edit = None if place is None else _retained(facts, place, number, at)
        yield fix(f"call {keep} after this line", *(edit,) if edit else (), place=place)
        leaf = next(iter(leaves_above(facts, number, at)), None)
        born = None if leaf is None else leaf_origin(facts, leaf, at)
        if born is not None and leaf is not None and facts.names.script_name(leaf, born.index):
            name = named(facts, leaf, born.index)
            text = f"or, for the gradient of the leaf, read {with_method(name, 'grad')}"
            if not _is_in_function(facts, born, at):
                text = f"or, for the gradient of the leaf, return {name} too, and read its `.grad`"
            yield fix(text, place=facts.span(born.site))
        elif born is not None and made is not None and facts.same_line(born.site, made.site):
            text = f"or make {named(facts, number, at)} the leaf: call `requires_grad_()` last on this line"
            yield fix(text, place=facts.span(made.site))
        return
    place, update = facts.span(rebound.made.site), _in_place(facts, rebound)
    if update:
        yield fix(f"update the leaf in place: `with torch.no_grad(): {update}`", place=place)
        return
    yield fix(f"give the result another name, so that `{rebound.name}` stays the leaf", place=place)
    text = "or, to train the result and not the leaf, make it a leaf: `.detach().requires_grad_()` at the end"
    yield fix(text, place=place)


def _naming_line(facts: TraceIndex, made: Call, number: int, at: int) -> Span | None:
    """Returns the line that gave a result its name at event `at`: the line that made it, or one that called its
    function."""
    name = named(facts, number, at).strip("`")
    sites = facts.call_chain(made.site)
    return facts.span(next((site for site in sites if name in facts.trace.sites[site].targets), made.site))


def _retained(facts: TraceIndex, place: Span, number: int, at: int) -> Edit | None:
    """Calls `retain_grad()` below the statement at a place, if that gives the tensor the name that event `at` uses."""
    name = named(facts, number, at).strip("`")
    statement = statement_at(facts, place.file, place.line)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    given = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    if name not in (ast.unparse(each) for each in given):
        return None
    return inserted_after(facts, place.file, place.line, f"{name}.retain_grad()")


def _is_in_function(facts: TraceIndex, call: Call, at: int) -> bool:
    """Returns whether a call is in the same function as event `at`, and its names can be read there."""
    event = facts.event(at)
    site = None if event is None or event.site is None else facts.trace.sites[event.site]
    own = facts.trace.sites[call.site]
    return site is None or (site.span.file, site.function) == (own.span.file, own.function)


def _rebound(facts: TraceIndex, number: int, at: int) -> _Rebound | None:
    """Finds the line that gave a computed tensor the name of the leaf that it was computed from."""
    made = next(iter(facts.producers(number, at)), None)
    name = None if made is None else facts.names.script_name(number, made.index)
    place = None if made is None else facts.span(made.site)
    if made is None or place is None or name not in facts.trace.sites[made.site].targets:
        return None
    for leaf in leaves_above(facts, number, at):
        born = leaf_origin(facts, leaf, at)
        site = None if born is None else facts.trace.sites[born.site]
        if born is not None and site is not None and facts.names.script_name(leaf, born.index) == name in site.targets:
            return _Rebound(name, made, place.line, site.span.line)
    return None


def _in_place(facts: TraceIndex, rebound: _Rebound) -> str:
    """Returns the update in place for an assignment: `w -= 0.1 * w.grad` for `w = w - 0.1 * w.grad`.

    "" if the assignment is no update by a gradient.
    """
    node = facts.names.syntax.node(facts.trace.sites[rebound.made.site].span)
    if not isinstance(node, ast.BinOp) or plain_name(node.left) != rebound.name:
        return ""
    reads = any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in ast.walk(node.right))
    return f"{rebound.name} {OPERATORS[type(node.op)]}= {ast.unparse(node.right)}" if reads else ""

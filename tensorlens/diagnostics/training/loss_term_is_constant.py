"""Finds the cause of `loss-term-is-constant`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import ConstantTerm, constant_terms
from tensorlens.analysis.training.magic_boxes import is_of_an_estimate
from tensorlens.analysis.training.number_terms import number_terms
from tensorlens.analysis.training.timeline import training_of
from tensorlens.diagnostics.shared.cut_facts import written
from tensorlens.diagnostics.shared.edits.expressions import with_keyword
from tensorlens.diagnostics.shared.optimizers import titled
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.report import Diagnostic, Edit, Fix

CODE = "loss-term-is-constant"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    if facts.trace.script.failure is None and not training.is_hidden:
        found = (term for term in constant_terms(training) if not _is_for_the_value(facts, term))
        yield from (_report(facts, term) for term in (*found, *number_terms(training)))


def _is_for_the_value(facts: TraceIndex, term: ConstantTerm) -> bool:
    return term.kind in ("dtype", "recording off") and is_of_an_estimate(facts, term)


def _report(facts: TraceIndex, term: ConstantTerm) -> Diagnostic:
    name = named(facts, term.term, term.added.index)
    term_text = f"the term {name}" if name.startswith("`") else "a term"
    parameters, names = titled(facts, term.trained)
    cause, why, text = _texts(facts, term)
    switch = facts.mode_switch(term.cut.index) if term.kind == "recording off" else None
    return finding(
        CODE,
        "warning" if term.kind in ("gradient", "number") else "note",
        f"{term_text} of the loss gives {parameters} no gradient: {cause}",
        why,
        [
            facts.label("graph_cut_here", term.cut.site, text),
            None if switch is None else facts.label("grad_mode_off_here", switch.site, "recording is off from here on"),
            facts.label("value_made_here", term.added.site, "puts the term into the loss"),
            facts.label("needed_here", term.backward.site, "computes the gradients of the other terms"),
        ],
        fixes=tuple(_fixes(facts, term)),
        evidence={"term": name, "parameters": [facts.name(number) for number in term.trained]},
        detail=names,
    )


def _texts(facts: TraceIndex, term: ConstantTerm) -> tuple[str, str, str]:
    """Returns the cause for the title, the reason, and the text of the label at the cut."""
    if term.kind == "gradient":
        return (
            "`autograd.grad()` ran without `create_graph=True`",
            "a gradient has a graph of its own only if `create_graph=True` asks for it: without one it is a constant",
            "a gradient without a graph of its own",
        )
    if term.kind == "number":
        return (
            "`.item()` makes it a plain number",
            "a plain number has no history: added to a loss it changes the value and no gradient",
            "a plain number from here on",
        )
    if term.kind == "recording off":
        return (
            "gradients were off",
            "what is computed while gradients are off is a constant to backward",
            "not recorded",
        )
    return (
        f"{written(facts, term.cut)} has no derivative",
        "whole numbers and truth values have no gradient: what is computed from them is a constant to backward",
        "the gradient stops here",
    )


def _fixes(facts: TraceIndex, term: ConstantTerm) -> Iterator[Fix]:
    here = facts.span(term.cut.site)
    if term.kind == "gradient":
        edits = _with_graph(facts, term)
        yield fix(
            "pass `create_graph=True`: the gradient gets a graph of its own, and the term a part in the training",
            *edits,
            place=here,
        )
    elif term.kind == "number":
        yield fix(
            "leave out `.item()`: the term then has a gradient, and what is computed from it is a tensor",
            *_without_item(facts, term),
            place=here,
        )
    elif term.kind == "recording off":
        yield fix("if the term is to train, compute it where gradients are on", place=here)
    else:
        yield fix(f"if the term is to train, use a smooth function in place of {written(facts, term.cut)}", place=here)


def _with_graph(facts: TraceIndex, term: ConstantTerm) -> tuple[Edit, ...]:
    """Returns the edits that let `autograd.grad` record its gradient, and keep the graph that this leads to."""
    node = facts.names.syntax.node(facts.trace.sites[term.cut.site].span)
    edit = with_keyword(facts, term.cut.site, "create_graph", "True")
    if edit is None or not isinstance(node, ast.Call):
        return ()
    freed = next((k.value for k in node.keywords if k.arg == "retain_graph"), None)
    if freed is None or (isinstance(freed, ast.Constant) and freed.value in (True, None)):
        return (edit,)
    keep = with_keyword(facts, term.cut.site, "retain_graph", "True")
    return () if keep is None else (edit, keep)


def _without_item(facts: TraceIndex, term: ConstantTerm) -> tuple[Edit, ...]:
    """Leaves out `.item()` behind an expression."""
    span = facts.trace.sites[term.cut.site].span
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "item":
        return ()
    return (Edit(span, facts.code_of(node.func.value, span.file)),)

"""Finds signs that sums of rows of a Hessian are meant: words of the program, or other second derivatives they meet."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import pairwise

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.gradients.summed_columns import outputs_at_once
from tensorlens.records.model import Call

_GRAD = "autograd.grad"
_SAID = frozenset("direction directions directional hvp shift shifts shifted parallel convexity translation".split())
_NAMED = _SAID | frozenset("along row rows hv uniform diagonal".split())
_HESSIANS = frozenset(("hessian", "hess"))
_KEEPS = frozenset("getitem unbind split chunk select narrow squeeze unsqueeze reshape view flatten".split())
_MEETS = frozenset("add radd iadd sub rsub isub".split())


def is_meant(facts: TraceIndex, second: Call, uses: Iterable[Call]) -> bool:
    """Returns whether the names, comments or docstrings around a derivative speak of a direction or of rows.

    The names are those of the functions around it, and those that the derivative and its uses are assigned to.
    """
    chain = facts.call_chain(second.site)
    lines = [*chain, *(each.site for each in uses)]
    sites = [facts.trace.sites[each] for each in lines]
    names = [words_of(name) for site in sites for name in (site.function, *site.targets)]
    texts = [words_of(text) for text in _texts(facts, lines)]
    return any(map(_is_product, names + texts)) or _has(names, _NAMED) or _has(texts, _SAID)


def _has(texts: list[list[str]], words: frozenset[str]) -> bool:
    return any(not words.isdisjoint(each) for each in texts)


def _is_product(words: list[str]) -> bool:
    """Returns whether some words speak of a product of a Hessian and a vector."""
    return any(one in _HESSIANS and other == "vector" for one, other in pairwise(words))


def _texts(facts: TraceIndex, sites: list[int]) -> Iterator[str]:
    """Yields the docstrings of the functions and files around some lines, and the comments at or above these lines."""
    for span in filter(None, map(facts.span, sites)):
        lines = facts.trace.sources.get(span.file, "").splitlines()
        yield from (ast.get_docstring(each) or "" for each in
                    (scope_around(facts, span.file, span.line), facts.tree(span.file)))  # fmt: skip
        yield from (line.partition("#")[2] for line in lines[span.line - 1 : span.end_line])
        yield from (line for line in lines[max(span.line - 2, 0) : span.line - 1] if line.lstrip().startswith("#"))


def meets_another(facts: TraceIndex, second: Call, gradient: int, above: Iterable[Call]) -> bool:
    """Returns whether sums of rows, or some of them, meet a derivative of one column of the same gradient in a sum or
    a difference, as where the mixed derivative is what remains of a row."""
    parts, sums, others = {gradient}, {access.tensor for access in second.outputs}, set[int]()
    for call in sorted(above, key=lambda each: each.index):
        inputs, results = {access.tensor for access in call.inputs}, {access.tensor for access in call.outputs}
        name = op_name(call)
        if call.op == _GRAD:
            is_other = call.inputs[0].tensor in parts and outputs_at_once(facts, call) != gradient
            others |= results if is_other else set()
        elif name in _MEETS and inputs & sums and inputs & others:
            return True
        elif name in _KEEPS | {"sum"}:
            parts |= results if inputs & parts else set()
            sums |= results if inputs & sums else set()
            others |= results if inputs & others else set()
    return False

"""Finds the cause of `multi-output-view-modified-inplace`, and whether the tensor that was split is read again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.expressions import expanded_assignment, out_of_place
from tensorlens.diagnostics.shared.kept import is_plain
from tensorlens.diagnostics.shared.rejected import rejected_calls, report_rejected
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.diagnostics.shared.roles.tensors import modified, views
from tensorlens.diagnostics.shared.wording import fix
from tensorlens.records.error_messages import FindingText, entry
from tensorlens.records.report import Diagnostic, Fix
from tensorlens.records.source import tree_of

CODE = "multi-output-view-modified-inplace"
_WORDS = FindingText(
    "PyTorch refuses {code}: {view} is one of several views that were made together",
    "autograd can't rewrite the history of the other views when one of them changes",
    (),
)


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    known = entry(CODE)
    for rejected in rejected_calls(facts, CODE) if known is not None else ():
        if known is not None:
            yield replace(report_rejected(rejected, known, _WORDS), fixes=tuple(_fixes(rejected)))


def _fixes(rejected: RejectedCall) -> Iterator[Fix]:
    """Suggests to write through the base if the function reads the base again, else to make a new tensor."""
    facts, changed = rejected.facts, modified(rejected)
    view = next(iter(views(rejected)), None)
    if changed is not None and changed.site != rejected.site:
        place = facts.span(changed.site)
        yield fix(
            f"take {rejected.name(view)} and the other views below this line, where they see the change", place=place
        )
        yield fix("or make a new tensor here instead of writing; the views then stay as they were", place=place)
        return
    base = None if view is None else facts.tensor(view).base
    name = "" if base is None or not is_plain(rejected.name(base)) else rejected.name(base).strip("`")
    made = None if view is None else facts.creator(view)
    taken, here = None if made is None else facts.span(made.site), facts.span(rejected.site)
    site = rejected.site
    edit = None if site is None else expanded_assignment(facts, site) or out_of_place(facts, site, rejected.op)
    whole = f"`{name}`" if name else "the tensor that was split"
    text = f"make a new tensor instead of writing, also for the other views; {whole} then stays as it was"
    if _is_read_again(rejected, name):
        through = f"write through {whole}, with an index for each part"
        yield fix(f"{through}: `{name}[...]`" if name else through, place=taken)
        yield fix(f"or {text}", place=here)
    else:
        yield fix(text, *(() if edit is None else (edit,)), place=here)


def _is_read_again(rejected: RejectedCall, name: str) -> bool:
    """Returns whether a line below the change reads a name in the same function; True if this is not known.

    A tensor without a name is read by nothing else.
    """
    facts, span = rejected.facts, rejected.facts.span(rejected.site)
    if span is None or not name.isidentifier():
        return bool(name)
    tree = tree_of(facts.trace.sources.get(span.file, "")) or ast.Module([], [])
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= span.line <= (node.end_lineno or 0)
    ]
    inside: ast.AST = max(functions, key=lambda node: node.lineno, default=tree)
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) and node.lineno > span.line
        for node in ast.walk(inside)
    )

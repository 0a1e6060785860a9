"""Finds what a custom `forward` computes and saves, where a second derivative was measured to miss its part.

A tensor that `forward` makes has no graph. In a `backward` that is differentiated again it is a constant, unless it is
an input or an output of the Function. A class that detaches a tensor may want this, and so may one whose text speaks
of an approximation, such as the Gauss-Newton matrix. Only what `backward` reads is named.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import class_around, first_line, method_of
from tensorlens.analysis.pass_around import pass_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.gradients.read_in_backward import read_attributes, read_slots
from tensorlens.records.callbacks import Run
from tensorlens.records.further_runs import ConstantInBackward
from tensorlens.records.model import Backward, Span

_MEANT = {"detach", "detach_", "data", "no_grad", "once_differentiable", "set_grad_enabled"}
_MEANT_WORDS = re.compile(r"gauss(?!ian)|newton|irls|re-?weigh|constant|approx|frozen|surrogate", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SavedIntermediate:
    measured: ConstantInBackward
    names: tuple[str, ...]
    saved: tuple[tuple[Span, tuple[str, ...]], ...]  # the lines that save them, each with what it saves
    made: tuple[tuple[Span, tuple[str, ...]], ...]  # those that compute them
    run: Run
    backward: Backward  # the pass that makes a graph of the gradient


def saved_intermediates(facts: TraceIndex) -> Iterator[SavedIntermediate]:
    """Yields what each measured Function saves, if the source shows which tensors these are."""
    wanted = {each.function: each for each in facts.trace.inspection.backward_constants}
    for run in facts.trace.callbacks.runs if wanted else ():
        returned, backward = facts.span(run.returned), pass_around(facts.trace, run.index)
        if returned is None or backward is None or not backward.create_graph:
            continue
        own = class_around(facts, returned.file, returned.line)
        measured = None if own is None else wanted.pop(own.name, None)
        if own is not None and measured is not None and not _is_meant(facts, own, returned.file):
            kept = _kept(own, measured)
            names = tuple(ast.unparse(value) for _, value in kept)
            nodes = dict.fromkeys(node for node, _ in kept)
            saves = [(node, tuple(ast.unparse(value) for each, value in kept if each is node)) for node in nodes]
            makes = _made(own, [value for _, value in kept])
            saved = tuple((facts.span_of(node, returned.file), given) for node, given in saves)
            made = tuple((facts.span_of(node, returned.file), given) for node, given in makes)
            if kept:
                yield SavedIntermediate(measured, names, saved, made, run, backward)


def _is_meant(facts: TraceIndex, own: ast.ClassDef, file: str) -> bool:
    """Returns whether a class cuts a graph, or its text or the comment above it speaks of an approximation."""
    names = (each.attr if isinstance(each, ast.Attribute) else each.id for each in ast.walk(own)
             if isinstance(each, ast.Attribute | ast.Name))  # fmt: skip
    lines = facts.trace.sources[file].splitlines()
    begin = first_line(own) - 1
    while begin and lines[begin - 1].lstrip().startswith("#"):
        begin -= 1
    text = " ".join(lines[begin : own.end_lineno])
    return not _MEANT.isdisjoint(names) or _MEANT_WORDS.search(text) is not None


def _kept(own: ast.ClassDef, measured: ConstantInBackward) -> list[tuple[ast.AST, ast.expr]]:
    """Returns (where it is kept, what) for the measured tensors that `backward` reads; [] if the source does not say
    this of all."""
    backward = method_of(own, "backward")
    slots = [] if backward is None else read_slots(backward, measured.slots)
    attributes = [] if backward is None else read_attributes(backward, measured.attributes)
    methods = [each for name in ("forward", "setup_context") if (each := method_of(own, name)) is not None]
    nodes = [node for method in methods for node in ast.walk(method)]
    calls = [each for each in nodes if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
             and each.func.attr == "save_for_backward"]  # fmt: skip
    found: list[tuple[ast.AST, ast.expr]] = []
    for slot in slots:
        args = calls[0].args if len(calls) == 1 else []
        if slot < len(args) and not any(isinstance(each, ast.Starred) for each in args):
            found.append((calls[0], args[slot]))
    for name in attributes:
        sets = [each for each in nodes if isinstance(each, ast.Assign) and any(_is_set(t, name) for t in each.targets)]
        found += [(sets[0], sets[0].targets[0])] if len(sets) == 1 else []
    return found if len(found) == len(slots) + len(attributes) else []


def _is_set(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == name and isinstance(target.value, ast.Name)


def _made(own: ast.ClassDef, values: list[ast.expr]) -> Iterator[tuple[ast.Assign, tuple[str, ...]]]:
    """Yields the statements of `forward` that set names which are saved, each with these names."""
    names = [each.id for each in values if isinstance(each, ast.Name)]
    forward = method_of(own, "forward")
    for node in ast.walk(forward) if forward is not None and names else ():
        if isinstance(node, ast.Assign):
            stored = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            given = tuple(name for name in names if name in stored)
            if given:
                yield node, given

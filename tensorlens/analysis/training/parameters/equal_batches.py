"""Says whether two passes of one round compute their losses from the same batch."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step


def is_one_batch(training: MeasuredTraining, before: Step, write: Call, second: Backward) -> bool:
    """Returns whether a layer gets one tensor both before a write to its parameters and after it.

    Before the write is the first pass of a round, and after it the second.
    """
    facts = training.facts
    stepped = {row.tensor for row in training.rows if row.is_stepped}
    sides: tuple[set[object], set[object]] = (set(), set())
    for call in facts.calls_between(before.index, second.index):
        read = {access.tensor for access in call.inputs}
        if not call.within and not call.writes and not read.isdisjoint(stepped):
            sides[call.index > write.index].update(_key(training, number) for number in read - stepped)
    return not sides[0].isdisjoint(sides[1])


def _key(training: MeasuredTraining, number: int) -> object:
    """Returns the number of a tensor, or what says which part of another one it is."""
    facts = training.facts
    made = facts.creator(number)
    node, span = (None, None) if made is None else (facts.node_at(made.site), facts.span(made.site))
    if made is None or span is None or op_name(made) != "getitem" or not isinstance(node, ast.Subscript):
        return number
    function = function_around(facts, span.file, span.line)
    given = set() if function is None else {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    read = {each.id for each in ast.walk(node.slice) if isinstance(each, ast.Name)}
    if not read.isdisjoint(given):
        return number  # each call of the function may get another part
    return facts.code_of(node, span.file), tuple(access.tensor for access in made.inputs)

"""Recognises masks of padding, and counts the places that they have for each row."""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.sequences_and_masks.padding_signs import (
    PAD,
    is_with_padding,
    lengths_of,
    marks_beginnings,
)
from tensorlens.analysis.training.value_ranges import made_as_zero_or_one
from tensorlens.records.model import Call


def padding_places(facts: TraceIndex, mask: tuple[int, int], lookups: list[Call]) -> int | None:
    """Returns how many places a mask has for each row, if it is one of padding: of zeros and ones, or bools."""
    made = made_as_zero_or_one(facts, *mask)
    if made is None or not made.outputs or len(facts.tensor(made.outputs[0].tensor).shape) < 2:
        return None
    name, shape = op_name(made), facts.tensor(made.outputs[0].tensor).shape
    if name in ("eq", "ne", "gt", "le") and len(made.inputs) == 1:
        is_padding = _names_padding(facts, made) or is_with_padding(facts, made, lookups)
    elif name in ("lt", "ge", "gt", "le") and len(made.inputs) == 2:
        is_padding = lengths_of(facts, made) is not None
    else:
        is_padding = marks_beginnings(facts, *mask)
        shape = facts.tensor(mask[0]).shape[:2]
    return shape[-1] if is_padding and shape[-1] > 1 else None


def _names_padding(facts: TraceIndex, comparison: Call) -> bool:
    """Returns whether the source compares whole numbers with something named as padding.

    The number that a loss ignores, -100, is no sign: labels have it where a token was not chosen, or in a prompt.
    """
    node = facts.node_at(comparison.site)
    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    sides = node.args[-1:] if isinstance(node, ast.Call) else sides
    if not facts.tensor(comparison.inputs[0].tensor).dtype.startswith("int"):
        return False
    return any(PAD & set(words_of(ast.unparse(each).split(".")[-1])) for each in sides[-1:])

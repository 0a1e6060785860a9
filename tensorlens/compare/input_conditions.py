"""Describes the inputs on which an answer differs, by the smallest set of properties that explains the answers.

Properties go together: a non-leaf x, for example, always requires grad. Inputs in which they vary apart from each other
show which one matters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from tensorlens.compare.comparison_records import Answer, Input

MAX_TRAITS = 3  # properties that are named together


@dataclass(frozen=True, slots=True)
class Trait:
    """A property of an input, worded as an adjective before `x`, a clause after it, or a noun in its place."""

    holds: Callable[[Input], bool]
    adjective: str = ""
    clause: str = ""
    noun: str = ""


TRAITS = (
    Trait(lambda x: x.requires_grad, clause="that requires grad"),
    Trait(lambda x: not x.requires_grad, clause="without grad"),
    Trait(lambda x: x.requires_grad and x.leaf, adjective="leaf", clause="that requires grad"),
    Trait(lambda x: x.requires_grad and not x.leaf, adjective="non-leaf"),
    Trait(lambda x: not x.contiguous, adjective="non-contiguous"),
    Trait(lambda x: x.contiguous, adjective="contiguous"),
    Trait(lambda x: x.layout == "transposed", adjective="transposed"),
    Trait(lambda x: x.layout in ("every_second", "first_columns"), clause="with gaps in memory"),
    Trait(lambda x: x.layout in ("contiguous", "transposed"), clause="without gaps in memory"),
    Trait(lambda x: x.layout == "every_second", noun="x = b[..., ::2]"),
    Trait(lambda x: x.layout == "first_columns", noun="x = b[..., :n]"),
    Trait(lambda x: x.view, clause="that is a view"),
    Trait(lambda x: not x.view, clause="that is not a view"),
    Trait(lambda x: math.prod(x.shape) > 1, clause="with several elements"),
    Trait(lambda x: math.prod(x.shape) == 1, clause="with one element"),
    Trait(lambda x: bool(x.shape) and x.shape[-1] == 1, clause="whose last dimension is 1"),
    Trait(lambda x: not x.shape or x.shape[-1] != 1, clause="whose last dimension is not 1"),
    Trait(lambda x: x.dtype == "float64", adjective="float64"),
    Trait(lambda x: x.dtype != "float64", clause="of a dtype other than float64"),
)


def quoted(error: str) -> str:
    """Replaces the shapes and versions of the probe's tensors in an error message by `[...]`, and removes the hint."""
    return re.sub(r": \[[\w.]+ \[[^\]]*\]\],? .*? instead\.", ": [...]", error.partition(" Hint: ")[0])


def comparable(answer: Answer) -> object:
    """Returns a value by which answers compare: `(3, 2), as x` and `(3, 1), as x` are the same answer."""
    return "as x" if answer.text.endswith(", as x") else answer.value


def exceptions(
    inputs: Sequence[Input], answers: dict[int, Answer], main: int, places: Sequence[int]
) -> list[tuple[str, list[Answer]]]:
    """Returns (description of inputs, their answers) for every answer that differs from that on the main input.

    `places` are the inputs to consider. A description fits its inputs, and no other input that has an answer.
    """
    answered = [place for place in places if place in answers]
    against = answered if main in answers else list(places)
    usual = comparable(answers[main]) if main in answers else None
    groups: dict[object, list[int]] = {}
    for place in answered:
        if comparable(answers[place]) != usual:
            groups.setdefault(comparable(answers[place]), []).append(place)
    return [(conditions(inputs, group, against), [answers[each] for each in group]) for group in groups.values()]


def conditions(inputs: Sequence[Input], chosen: Sequence[int], asked: Sequence[int]) -> str:
    """Describes the `chosen` inputs, and no other of the `asked` ones: `a leaf x, or a transposed x`."""
    return ", or ".join(_phrase(term) for term in _cover(inputs, chosen, asked))


Term = tuple[Trait, ...] | Input


def _cover(inputs: Sequence[Input], chosen: Sequence[int], asked: Sequence[int]) -> list[Term]:
    """Finds as few terms as possible that together fit all chosen inputs, and no other input."""
    masks = [(trait, _mask(place for place in asked if trait.holds(inputs[place]))) for trait in TRAITS]
    everything, wanted = _mask(asked), _mask(chosen)
    useful = [(trait, mask) for trait, mask in masks if mask & everything != everything and mask & wanted]
    terms: list[tuple[tuple[Trait, ...], int]] = []
    for size in range(1, MAX_TRAITS + 1):
        for several in combinations(useful, size):
            covered = everything
            for _, mask in several:
                covered &= mask
            if covered and not covered & ~wanted:
                terms.append((tuple(trait for trait, _ in several), covered))
        if any(covered == wanted for _, covered in terms):
            break
    chosen_terms: list[Term] = []
    left = wanted
    while left:
        best = max(terms, key=lambda term: ((term[1] & left).bit_count(), -len(term[0])), default=None)
        if best is None or not best[1] & left:
            return [*chosen_terms, *(inputs[place] for place in chosen if left >> place & 1)]
        chosen_terms.append(best[0])
        left &= ~best[1]
    return chosen_terms


def _mask(places: Iterable[int]) -> int:
    mask = 0
    for place in places:
        mask |= 1 << place
    return mask


def _phrase(term: Term) -> str:
    if isinstance(term, Input):
        return term.label
    adjectives = sorted((trait.adjective for trait in term if trait.adjective), key=lambda each: each.endswith("leaf"))
    clauses = list(dict.fromkeys(trait.clause for trait in term if trait.clause))
    noun = next((trait.noun for trait in term if trait.noun), "x")
    named = " ".join([*adjectives, noun])
    article = "" if named == noun != "x" else "an " if named[0] in "aeioux" else "a "
    return " ".join([f"{article}{named}", " and ".join(clauses)]).rstrip()

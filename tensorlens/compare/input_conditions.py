"""On which inputs an answer is another one, in words: the smallest set of properties that explains the answers.

A non-leaf x also requires grad. Inputs that differ from each other in two properties show which of the two matters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from tensorlens.compare.comparison_records import Answer, Input

MOST = 3  # properties that are named together


@dataclass(frozen=True, slots=True)
class Trait:
    """A property of an input, as an adjective before `x`, a clause behind it or another word for it."""

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
    Trait(lambda x: not x.view, clause="that is no view"),
    Trait(lambda x: math.prod(x.shape) > 1, clause="with several elements"),
    Trait(lambda x: math.prod(x.shape) == 1, clause="with one element"),
    Trait(lambda x: bool(x.shape) and x.shape[-1] == 1, clause="whose last dimension is 1"),
    Trait(lambda x: not x.shape or x.shape[-1] != 1, clause="whose last dimension is not 1"),
    Trait(lambda x: x.dtype == "float64", adjective="float64"),
    Trait(lambda x: x.dtype != "float64", clause="of another dtype than float64"),
)


def quoted(error: str) -> str:
    """An error without the shapes and versions of the probe's own tensors, and without advice on other tools."""
    return re.sub(r": \[[\w.]+ \[[^\]]*\]\],? .*? instead\.", ": [...]", error.partition(" Hint: ")[0])


def kind(answer: Answer) -> object:
    """What makes two answers the same: `(3, 2), as x` and `(3, 1), as x` are."""
    return "as x" if answer.text.endswith(", as x") else answer.value


def exceptions(
    inputs: Sequence[Input], answers: dict[int, Answer], main: int, places: Sequence[int]
) -> list[tuple[str, list[Answer]]]:
    """(for which inputs, the answers there, which are of one kind) for every kind that is not the main input's.

    `places` are the inputs to speak of; the words are true of those and false of all others that were asked.
    """
    asked = [place for place in places if place in answers]
    against = asked if main in answers else list(places)
    usual = kind(answers[main]) if main in answers else None
    groups: dict[object, list[int]] = {}
    for place in asked:
        if kind(answers[place]) != usual:
            groups.setdefault(kind(answers[place]), []).append(place)
    return [(conditions(inputs, group, against), [answers[each] for each in group]) for group in groups.values()]


def conditions(inputs: Sequence[Input], chosen: Sequence[int], asked: Sequence[int]) -> str:
    """Words that are true of the `chosen` inputs, and of no other that was asked: `a leaf x, or a transposed x`."""
    return ", or ".join(_phrase(term) for term in _cover(inputs, chosen, asked))


Term = tuple[Trait, ...] | Input


def _cover(inputs: Sequence[Input], chosen: Sequence[int], asked: Sequence[int]) -> list[Term]:
    """As few terms as can be found, each true of some chosen inputs and of no other, together true of all."""
    masks = [(trait, _mask(place for place in asked if trait.holds(inputs[place]))) for trait in TRAITS]
    everything, wanted = _mask(asked), _mask(chosen)
    useful = [(trait, mask) for trait, mask in masks if mask & everything != everything and mask & wanted]
    terms: list[tuple[tuple[Trait, ...], int]] = []
    for size in range(1, MOST + 1):
        for several in combinations(useful, size):
            covered = everything
            for _, mask in several:
                covered &= mask
            if covered and not covered & ~wanted:
                terms.append((tuple(trait for trait, _ in several), covered))
        if any(covered == wanted for _, covered in terms):
            break
    found: list[Term] = []
    left = wanted
    while left:
        best = max(terms, key=lambda term: ((term[1] & left).bit_count(), -len(term[0])), default=None)
        if best is None or not best[1] & left:
            return [*found, *(inputs[place] for place in chosen if left >> place & 1)]
        found.append(best[0])
        left &= ~best[1]
    return found


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

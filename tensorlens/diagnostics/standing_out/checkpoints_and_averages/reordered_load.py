"""Names an optimizer that loads averages of another one which has the parameters in another order."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import StandingOut
from tensorlens.records.training import OptimizerGroup
from tensorlens.records.training_values import LoadedAverages

_MIN_STEPS = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these loads, if the values of the parameters were at other places when the state was made, or if the same
    lines have made the parameters of both optimizers in the same order."""
    facts, seen = training.facts, set[int | None]()
    if _changes_state(facts):
        return
    held = defaultdict[int, list[OptimizerGroup]](list)
    for group in training.groups:
        held[group.optimizer].append(group)
    for moved in facts.trace.inspection.reordered_averages:
        one, other = (held[number] for number in moved.optimizers)
        if moved.site not in seen and one:
            seen.add(moved.site)
            yield _sentence(facts, moved.site, moved.counts, (one, other))
    for load in facts.trace.inspection.loaded_averages:
        new = [groups for groups in held.values() if _begins(training, groups) > load.index and _holds(groups, load)]
        old = [groups for groups in held.values() if 0 < _begins(training, groups) < load.index]
        old = sorted(
            (groups for groups in old if groups[0].name == load.name), key=lambda each: _begins(training, each)
        )
        if load.site in seen or len(new) != 1 or not old or old[-1][0].steps < _MIN_STEPS:
            continue
        before, after = _places(facts, old[-1]), _places(facts, new[0])
        if before is None or after is None or sorted(before) != sorted(after):
            continue
        if any(_places(facts, groups) == after for groups in old):
            continue  # perhaps it loads the state of this one
        others = [place for place, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
        if others:
            yield _sentence(facts, load.site, (len(others), len(after)), (new[0], old[-1]))


def _sentence(
    facts: TraceIndex,
    site: int | None,
    counts: tuple[int, int],
    optimizers: tuple[list[OptimizerGroup], list[OptimizerGroup]],
) -> StandingOut:
    new, old = optimizers
    return stands_out(
        f"the new `{new[0].name}` loads the averages of {counts[0]} of {counts[1]} parameters for others: it has the "
        "parameters in another order than the one whose state is loaded, and a state goes by the order",
        facts.label("called_here", site, "loaded here"),
        facts.label("optimizer_made_here", new[0].site, "the new order"),
        facts.label("optimizer_made_here", old[0].site, "the order before") if old else None,
    )


def _begins(training: MeasuredTraining, groups: list[OptimizerGroup]) -> int:
    """Returns the event of the first step of an optimizer; 0: it makes none."""
    turn = groups[0].turns[0]
    return training.training.steps[turn - 1].index if turn > 0 else 0


def _holds(groups: list[OptimizerGroup], load: LoadedAverages) -> bool:
    return set(load.parameters) == {number for group in groups for number in group.parameters}


def _places(facts: TraceIndex, groups: list[OptimizerGroup]) -> list[tuple[int, tuple[int, ...], str]] | None:
    """Returns, for each parameter of an optimizer in its order, which of them was made at this place in the order of
    making, its shape, and the place in the source that made it; None if one was made elsewhere."""
    numbers = [number for group in sorted(groups, key=lambda each: each.group) for number in group.parameters]
    made = {number: facts.creator(number) for number in numbers}
    if len(made) < len(numbers) or len(made) < 2:
        return None
    indices = {number: call.index for number, call in made.items() if call is not None}
    spans = {number: facts.span(call.site) for number, call in made.items() if call is not None}
    if len(indices) < len(numbers):
        return None
    ranks = {number: rank for rank, number in enumerate(sorted(numbers, key=lambda each: indices[each]))}
    return [(ranks[each], facts.tensor(each).shape, str(spans[each])) for each in numbers]


def _changes_state(facts: TraceIndex) -> bool:
    """Returns whether the program looks into the state of an optimizer, as one that puts it into another order does."""
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return any(
        (isinstance(node, ast.Constant) and node.value == "state")
        or (isinstance(node, ast.Attribute | ast.keyword) and _name(node) == "state")
        for node in nodes
    )


def _name(node: ast.Attribute | ast.keyword) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.arg

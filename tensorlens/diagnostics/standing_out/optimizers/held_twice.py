"""Names parameters that two optimizers hold and step in turn."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations, permutations

from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.opposed_passes import are_opposed
from tensorlens.analysis.training.timeline import GRAD_SET, Moment, Training
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step
from tensorlens.records.report import StandingOut
from tensorlens.records.training import OptimizerGroup

_GIVING = frozenset(("copy", "foreach_copy", "set"))


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these parameters, unless one optimizer is inside the other, or steps only when the other has ended."""
    inside = {group.optimizer for group in training.groups if group.is_shared}
    moving = [group for group in training.groups if group.steps and group.rates != (0, 0)]
    groups = [group for group in moving if group.optimizer not in inside]
    pairs: dict[tuple[int, int], tuple[OptimizerGroup, OptimizerGroup, set[int]]] = {}
    for one, other in combinations(groups, 2):
        if one.optimizer != other.optimizer and _take_turns(one, other):
            numbers = pairs.setdefault((one.optimizer, other.optimizer), (one, other, set()))[2]
            numbers.update(set(one.parameters) & set(other.parameters))
    shared: dict[tuple[int, ...], dict[int, OptimizerGroup]] = {}
    for one, other, numbers in pairs.values():
        holding = shared.setdefault(tuple(sorted(numbers)), {})
        holding.update({one.optimizer: one, other.optimizer: other})
    for tensors, holding in shared.items():
        rows = [row for row in training.rows if row.tensor in tensors and row.statistics and row.statistics.filled]
        rows = [row for row in rows if _is_stepped_in_turn(training.training, row.tensor)]
        if not rows or _are_nested(training, tensors):
            continue
        own = _have_own_passes(training.training, rows[0].tensor) and not _reach_rest(training, holding)
        is_chosen = any(_has_own_rate(training, group) for group in holding.values())
        opposed = own and not is_chosen and _are_opposed(training, rows)
        if opposed or not own:
            yield _sentence(training, list(holding.values()), rows, opposed)


def _has_own_rate(training: MeasuredTraining, group: OptimizerGroup) -> bool:
    """Returns whether an optimizer holds the parameters of a group for a learning rate of their own: on purpose."""
    return any(each.optimizer == group.optimizer and each.made_rate != group.made_rate for each in training.groups)


def _is_stepped_in_turn(training: Training, number: int) -> bool:
    """Returns whether steps of two optimizers find a gradient of a parameter, and none has ended when the other
    begins. Steps are of one optimizer if they have one name and step equal parameters."""
    found: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
    for step in training.steps:
        if any(n == number and g is not None for n, g in zip(step.parameters, step.gradients, strict=True)):
            found[step.op, step.parameters].append(step.index)
    pairs = combinations(found.values(), 2)
    if len({(step.op, step.parameters) for step in training.steps if number in step.parameters}) == 1:
        return True  # optimizers of one kind hold equal parameters
    return any(one[0] < other[-1] and other[0] < one[-1] for one, other in pairs)


def _reach_rest(training: MeasuredTraining, optimizers: Iterable[int]) -> bool:
    """Returns whether the pass before a step of one optimizer, which holds a part of the parameters of another one,
    reaches the rest of these too: the two were meant to hold different parameters, as the weights and the architecture
    in DARTS."""
    held: dict[int, set[int]] = {number: set() for number in optimizers}
    for group in training.groups:
        held.get(group.optimizer, set()).update(group.parameters)
    facts = training.facts
    passes = [each for each in facts.backwards if not each.failed and each.op != "autograd.grad"]
    indices = [each.index for each in passes]
    for small, large in permutations(held.values(), 2):
        if small < large:
            steps = (step for step in training.training.steps if set(step.parameters) == small)
            before = (passes[at - 1] for step in steps if (at := bisect_left(indices, step.index)))
            if any(change.tensor in large - small for each in before for change in each.gradients):
                return True
    return False


def _are_opposed(training: MeasuredTraining, rows: list[ParameterRow]) -> bool:
    """Returns whether the passes before the steps of two optimizers have losses of opposite signs, as where the
    optimizer of a generator holds the discriminator, too."""
    passes: dict[tuple[str, int | None], Backward] = {}
    filled: Backward | None = None
    for moment in training.training.moments.get(rows[0].tensor, ()):
        if moment.kind == "clear" or isinstance(moment.event, Backward):
            filled = moment.event if isinstance(moment.event, Backward) else None
        elif moment.kind == "update" and isinstance(moment.event, Step) and filled is not None:
            passes.setdefault((moment.event.op, moment.event.site), filled)
    shared = {row.tensor for row in rows}
    return any(are_opposed(training.facts, one, other, shared) for one, other in permutations(passes.values(), 2))


def _have_own_passes(training: Training, number: int) -> bool:
    """Returns whether each step has gradients of its own, as in an adversarial autoencoder: a pass for each optimizer,
    also by one function for all, or gradients that the script gives, as the difference of weights in Reptile."""
    is_filled, steps = False, 0
    for moment in training.moments.get(number, ()):
        if moment.kind == "fill" or (moment.kind == "touch" and _gives_gradient(moment)):
            is_filled = True
        elif moment.kind == "update" and isinstance(moment.event, Step):
            if not is_filled:
                return False
            is_filled, steps = False, steps + 1
    return steps > 1


def _gives_gradient(moment: Moment) -> bool:
    return isinstance(moment.event, Call) and (moment.event.op == GRAD_SET or op_name(moment.event) in _GIVING)


def _are_nested(training: MeasuredTraining, tensors: tuple[int, ...]) -> bool:
    """Returns whether one optimizer steps inside the step of another one."""
    facts, steps = training.facts, [each for each in training.training.steps if set(tensors) & set(each.parameters)]
    sites = {step.site for step in steps}
    return any(site is not None and set(facts.call_chain(site)[1:]) & sites for site in sites)


def _take_turns(one: OptimizerGroup, other: OptimizerGroup) -> bool:
    return one.turns[0] < other.turns[1] and other.turns[0] < one.turns[1]


def _sentence(
    training: MeasuredTraining, groups: list[OptimizerGroup], rows: list[ParameterRow], opposed: bool
) -> StandingOut:
    label = training.facts.label
    one, other = groups[:2]
    if len(groups) > 2:
        kind = f"`{one.name}` " if len({group.name for group in groups}) == 1 else ""
        holders, both = f"{len(groups)} {kind}optimizers", "each of them steps"
    else:
        holders = f"`{one.name}` and `{other.name}`" if one.name != other.name else f"two `{one.name}` optimizers"
        both = "both step"
    if opposed:
        both += ", by losses with opposite signs in what their layer returns"
    return stands_out(
        f"{listed(rows)} {'is' if len(rows) == 1 else 'are'} in {holders}, and {both}",
        label("optimizer_made_here", other.site, "the second is made here"),
        label("optimizer_made_here", one.site, "the first is made here"),
    )

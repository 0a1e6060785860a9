"""Names states of an optimizer or a scheduler that a checkpoint keeps, and that nothing loads where the training goes
on from it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from math import isclose
from statistics import fmean

from tensorlens.analysis.code_around import parent_of, scope_around
from tensorlens.analysis.naming.syntax import called_name, last_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.other_loads import other_loads
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call
from tensorlens.records.observations import Step
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import MOST_NORMS, LearningRateSchedule, OptimizerGroup

_LOADS = "Module.load_state_dict"
_SHOWING = frozenset("print pprint info debug len str repr format type list keys".split())
_PARTS = ("opt", "sch")  # of the names of optimizers and schedulers


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds a new optimizer with momentum, or a new scheduler, that goes on with a module after it was loaded, in a
    program that keeps the state of one and loads none."""
    facts = training.facts
    loads = [call for call in facts.calls if facts.trace.sites[call.site].through == _LOADS and call.writes]
    if loads and not training.training.is_hidden and not facts.trace.inspection.switches:
        yield from _optimizers(training, loads)
        yield from _schedules(training, loads)
        yield from _unkept_schedules(training)


def _optimizers(training: MeasuredTraining, loads: list[Call]) -> Iterator[StandingOut]:
    facts, kept = training.facts, list(_state_dicts(training.facts, "opt"))
    if not kept or _writes_states(facts):
        return
    begun: dict[int, tuple[Call, Step]] = {}  # the first step of each optimizer
    for step in training.training.steps:
        made = training.training.optimizer_call(step)
        if made is not None:
            begun.setdefault(made.index, (made, step))
    for new, step in begun.values():
        earlier = [pair for pair in begun.values() if pair[0].op == new.op and pair[0].index < new.index]
        since = earlier[-1][1].index if earlier else 0
        load = _resuming_load(training, loads, step.parameters, since, step.index) if earlier else None
        groups = [group for group in training.groups if group.site == new.site and group.momentum]
        if load is None or not groups or not _stepped_before(training, new, load):
            continue
        if not _made_alike(training, earlier[-1][0], new):
            continue
        name = groups[0].name
        yield stands_out(
            f"a line keeps the `state_dict()` of an optimizer, and none loads it: the `{name}` that goes on after the "
            "parameters were loaded begins without averages of earlier gradients",
            *kept[:1],
            facts.label("optimizer_made_here", new.site, "begins anew"),
            facts.label("replaced_here", load.site, "the parameters are loaded here"),
        )
        return


def _made_alike(training: MeasuredTraining, before: Call, new: Call) -> bool:
    """Returns whether an optimizer is made with the learning rate of an earlier one: another stage has its own."""
    rates = [[group.made_rate for group in training.groups if group.site == made.site] for made in (before, new)]
    if before.site == new.site:
        return len(set(map(str, rates[0]))) <= 1
    return not all(rates) or any(str(one) == str(other) for one in rates[0] for other in rates[1])


def _writes_states(facts: TraceIndex) -> bool:
    """Returns whether a line may write the state of an optimizer itself, as `opt.state[p] = averages`. An optimizer of
    the script writes its own `self.state` in its steps."""
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "__setstate__":
                return True
            if isinstance(node, ast.Attribute | ast.Subscript) and _is_state(node):
                return True
    return False


def _is_state(node: ast.Attribute | ast.Subscript) -> bool:
    """Returns whether an expression stores `opt.state` or an item of it, or reads an item that a line may write to."""
    state, is_stored = node.value if isinstance(node, ast.Subscript) else node, isinstance(node.ctx, ast.Store)
    if isinstance(state, ast.Attribute) and state.attr in ("update", "setdefault"):
        state, is_stored = state.value, True
    if not isinstance(state, ast.Attribute) or state.attr != "state" or last_name(state.value) == "self":
        return False
    return is_stored or (isinstance(node, ast.Subscript) and "opt" in last_name(state.value).lower())


def _resuming_load(
    training: MeasuredTraining, loads: list[Call], parameters: Collection[int], first: int, before: int
) -> Call | None:
    """Returns the last load before a first step, if it belongs to loads of all parameters of the optimizer, of values
    that the training from event `first` on has made.

    A new head is in another training, and so is a fold that begins with the weights that each fold begins with.
    """
    steps = [each.index for each in training.training.steps]
    last = next((each for each in reversed(loads) if each.index < before and _writes_one(each, parameters)), None)
    if last is None or any(each.site == last.site and each.index < first for each in loads):
        return None
    since = max((each for each in steps if each < last.index), default=-1)
    together = [each for each in loads if since < each.index < before]
    loaded = {write.tensor for each in together for write in each.writes}
    return last if loaded.issuperset(parameters) and _is_trained(training, last, first) else None


def _writes_one(load: Call, parameters: Collection[int]) -> bool:
    return any(write.tensor in parameters for write in load.writes)


def _is_trained(training: MeasuredTraining, load: Call, first: int) -> bool:
    """Returns whether a load takes values that a step or a call has made after event `first`."""
    facts, written = training.facts, {write.tensor for write in load.writes}
    stepped = {
        facts.storage_of(number, each.index)
        for each in training.training.steps
        if first <= each.index < load.index
        for number in each.parameters
    }
    for number in {access.tensor for access in load.inputs} - written:
        made = next(iter(facts.producers(number, load.index)), None)
        if facts.storage_of(number, load.index) in stepped or (made is not None and made.index > first):
            return True
    return False


def _stepped_before(training: MeasuredTraining, new: Call, load: Call) -> bool:
    """Returns whether another optimizer stepped before."""
    return any(step.index < min(new.index, load.index) for step in training.training.steps)


def _schedules(training: MeasuredTraining, loads: list[Call]) -> Iterator[StandingOut]:
    facts, kept = training.facts, list(_state_dicts(training.facts, "sch"))
    number = training.measured.number
    groups: dict[int | None, OptimizerGroup] = {group.optimizer: group for group in training.groups[::-1]}
    made = [each for each in facts.trace.inspection.schedules if each.number == number and each.steps]
    loaded = {each.optimizer for each in facts.trace.inspection.loaded_rates if each.number == number}
    for earlier, new in pairwise(made) if kept else ():
        before, after = groups.get(earlier.optimizer), groups.get(new.optimizer)
        if before is None or after is None or before is after or new.name != earlier.name:
            continue
        is_loaded = new.optimizer in loaded  # its first step has the loaded rate
        course = after.course[is_loaded:]
        is_alike = _are_same(groups, earlier, new) if is_loaded else _begin_alike(before, after)
        if not before.course or not course or not is_alike or not _restarts(before.course, course):
            continue
        steps = [step.index for step in training.training.steps]
        started, begun = steps[: before.turns[0]], steps[: after.turns[0]]
        every = {number for each in training.groups if each.optimizer == new.optimizer for number in each.parameters}
        load = _resuming_load(training, loads, every, started[-1], begun[-1]) if started and begun else None
        if load is not None:
            yield stands_out(
                f"a line keeps the `state_dict()` of a scheduler, and none loads it: the `{new.name}` that goes on "
                f"after the parameters were loaded begins anew, with a learning rate of {course[0]:.3g} after "
                f"{before.course[-1]:.3g}",
                *kept[:1],
                facts.label("observed_here", new.site, "begins anew"),
                facts.label("replaced_here", load.site, "the parameters are loaded here"),
            )
            return


def _restarts(before: Sequence[float], after: Sequence[float]) -> bool:
    """Returns whether the rates begin anew: higher than the last one, or with a warm-up after rates that fell."""
    falls = len(before) > 1 and before[-1] < before[-2]
    return after[0] > before[-1] or (falls and len(after) > 1 and after[0] < after[1])


def _begin_alike(before: OptimizerGroup, after: OptimizerGroup) -> bool:
    """Returns whether the first rate of two groups is the same: another training begins with a rate of its own."""
    width = max(_steps_of_one(before), _steps_of_one(after))
    one, other = _means(before, width)[:1], _means(after, width)[:1]
    return bool(one) and bool(other) and isclose(one[0], other[0])


def _unkept_schedules(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Yields a scheduler that one line makes again for an optimizer whose state is loaded, in a program that keeps no
    state of a scheduler and does not say at which epoch one begins."""
    facts, number = training.facts, training.measured.number
    if not _keeps_states_of_optimizers_only(facts) or _sets_rates(facts):
        return
    loaded = {each.optimizer: each for each in facts.trace.inspection.loaded_rates if each.number == number}
    groups: dict[int | None, OptimizerGroup] = {group.optimizer: group for group in training.groups[::-1]}
    made = [each for each in facts.trace.inspection.schedules if each.number == number and each.steps]
    for earlier, new in pairwise(made):
        load = loaded.get(new.optimizer) if new.optimizer is not None else None
        span = facts.span(new.site)
        is_again = new.site == earlier.site and new.optimizer != earlier.optimizer and _are_same(groups, earlier, new)
        if load is not None and span is not None and is_again and not _begins_at(facts.names.syntax.node(span)):
            yield stands_out(
                f"no line keeps the `state_dict()` of a scheduler: a `{new.name}` begins anew for an optimizer whose "
                f"state is loaded, after {earlier.steps:,} steps of an earlier one",
                facts.label("observed_here", new.site, "begins anew"),
                facts.label("replaced_here", load.site, "the optimizer is loaded here"),
            )
            return


def _keeps_states_of_optimizers_only(facts: TraceIndex) -> bool:
    """Returns whether each state that a line keeps or loads is one of a module or, by its name, of an optimizer."""
    modules = {facts.span(each.id) for each in facts.trace.sites if each.through == "Module.state_dict"}
    kept = [
        node.func
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"
        if facts.span_of(node, file) not in modules
    ]
    return bool(kept) and all("opt" in _last_name(method) for method in [*kept, *other_loads(facts)])


def _are_same(
    groups: dict[int | None, OptimizerGroup], earlier: LearningRateSchedule, new: LearningRateSchedule
) -> bool:
    """Returns whether the first rate that each of two schedulers sets is the same, and another one than before. Where
    only means of several rates are known, all of them are the same, as far as both go."""
    pair = [groups[each.optimizer] for each in (earlier, new) if each.optimizer in groups]
    widths = [_steps_of_one(group) for group in pair]
    if len(pair) < 2:
        return False
    if max(widths) == 1:
        firsts = [list(dict.fromkeys(group.course))[1:2] for group in pair]
        return bool(firsts[0]) and firsts[0] == firsts[1]
    one, other = (_means(group, max(widths))[1:] for group in pair)  # the first step may have the loaded rate
    common = min(len(one), len(other))
    return len(set(one[:common])) > 1 and all(map(isclose, one[:common], other[:common]))


def _means(group: OptimizerGroup, steps: int) -> list[float]:
    """Returns the mean of the rates of the first `steps` steps, of the next ones, and so on."""
    size = steps // _steps_of_one(group)
    return [fmean(group.course[place : place + size]) for place in range(0, group.steps // steps * size, size)]


def _steps_of_one(group: OptimizerGroup) -> int:
    """Returns of how many steps each rate of a course is the mean."""
    width = 1
    while group.steps // width >= MOST_NORMS:
        width *= 2
    return width


def _sets_rates(facts: TraceIndex) -> bool:
    """Returns whether a line assigns a learning rate to a group of an optimizer itself."""
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.Subscript))
    return any(
        isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Constant) and node.slice.value == "lr"
        for node in nodes
    )


def _begins_at(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and any(each.arg == "last_epoch" for each in node.keywords)


def _state_dicts(facts: TraceIndex, part: str) -> Iterator[Label]:
    """Yields the places that ask for the state of an optimizer or a scheduler, unless a line may load such a state.

    A name that contains `part` is one of an optimizer ("opt") or of a scheduler ("sch"). A load of the other kind
    does not count.
    """
    other = next(each for each in _PARTS if each != part)
    if any(other not in _last_name(method) for method in other_loads(facts)):
        return
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict":
                if part in _last_name(node.func) and _is_kept(facts, node, file):
                    yield Label("observed_here", facts.span_of(node, file), "kept here")


def _is_kept(facts: TraceIndex, node: ast.Call, file: str) -> bool:
    """Returns whether a line keeps a whole state, and does not only read or show a part: `state["param_groups"]`."""
    around = parent_of(facts, file, node)
    if isinstance(around, ast.Assign) and isinstance(around.targets[0], ast.Name):
        scope, name = scope_around(facts, file, node.lineno), around.targets[0].id
        names = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name]
        uses = [parent_of(facts, file, each) for each in names if isinstance(each.ctx, ast.Load)]
        return not uses or not all(map(_is_shown, uses))
    while isinstance(around, ast.expr | ast.keyword | ast.FormattedValue):
        if _is_shown(around):
            return False
        around = parent_of(facts, file, around)
    return True


def _is_shown(around: ast.AST | None) -> bool:
    """Returns whether an expression takes a part of what is in it, or shows it: `state["lr"]`, `print(state)`."""
    if isinstance(around, ast.Call):
        return called_name(around) in _SHOWING
    return isinstance(around, ast.Subscript | ast.Attribute | ast.FormattedValue)


def _last_name(method: ast.Attribute) -> str:
    return (plain_name(method.value) or "").rpartition(".")[2].lower()

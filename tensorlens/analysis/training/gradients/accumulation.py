"""Finds the backward passes whose gradients add up before an optimizer step, and passes that no step uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.cleared_gradients import calls_between, cleared_gradients, is_chosen
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.inspected_gradients import inspected_gradients
from tensorlens.analysis.training.timeline import Moment, Training
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step
from tensorlens.records.training import ReducedLoss

_PARTS = ("split", "chunk", "tensor_split", "unbind", "narrow")
_HOOKS = frozenset(
    """
    register_hook register_full_backward_hook register_full_backward_pre_hook register_post_accumulate_grad_hook
    register_multi_grad_hook register_module_full_backward_hook register_module_full_backward_pre_hook register_prehook
    """.split()
)  # functions that get gradients during a pass
_OWN_GRADIENT = {"retain_graph", "create_graph", "inputs"}  # arguments of `backward()` that leave the weight alone


@dataclass(frozen=True, slots=True)
class Accumulation:
    """Passes of one line whose gradients one step used together, each with the reduction of its loss."""

    step: Step
    passes: tuple[Backward, ...]
    losses: tuple[ReducedLoss, ...]
    is_changed: bool  # the script changed the sum in another way than by clipping it


@dataclass(frozen=True, slots=True)
class Discarded:
    """Passes of one line whose gradients one line cleared before a step used any of them."""

    site: int
    cleared: int | None
    count: int
    total: int  # passes of the line


def accumulations(training: Training) -> Iterator[Accumulation]:
    """Yields the accumulations of which each pass has a known reduction, in the order of their steps."""
    reduced = {each.index: each for each in training.facts.trace.inspection.reduced}
    for steps in training.optimizers:
        own = {step.index for step in steps}
        first = next((number for number in steps[0].parameters if training.first_fill(number) is not None), None)
        for fills, touches, moment in _rounds(training.moments.get(first, ()) if first is not None else ()):
            step, passes = moment.event, [fill.event for fill in fills]
            if not isinstance(step, Step) or step.index not in own or len(passes) < 2:
                continue
            known = [each for each in passes if isinstance(each, Backward) and _has_own_weight(training.facts, each)]
            losses = [reduced[each.started] for each in known if each.started in reduced]
            if len(losses) == len(passes) and len({each.site for each in known}) == 1:
                changed = any(not _is_clipping(training.facts, touch) for touch in touches)
                yield Accumulation(step, tuple(known), tuple(losses), changed)


def _rounds(moments: Sequence[Moment]) -> Iterator[tuple[list[Moment], list[Moment], Moment]]:
    """Yields (fills, touches, update) for each update of a leaf that used only gradients since they were cleared."""
    fills: list[Moment] = []
    touches: list[Moment] = []
    is_clear = False
    for moment in moments:
        if moment.kind == "clear":
            fills, touches, is_clear = [], [], True
        elif moment.kind == "fill":
            is_clear |= moment.fresh
            fills.append(moment)
        elif moment.kind == "touch":
            touches.append(moment)
        elif fills:
            if is_clear:
                yield fills, touches, moment
            fills, touches, is_clear = [], [], False


def _has_own_weight(facts: TraceIndex, backward: Backward) -> bool:
    """Returns whether the script calls `backward()` without a gradient of its own."""
    node = facts.names.syntax.node(facts.trace.sites[backward.site].span)
    return isinstance(node, ast.Call) and not node.args and {each.arg for each in node.keywords} <= _OWN_GRADIENT


def _is_clipping(facts: TraceIndex, touch: Moment) -> bool:
    site = touch.event.site
    node = None if site is None else facts.names.syntax.node(facts.trace.sites[site].span)
    return isinstance(node, ast.Call) and "clip_grad" in last_name(node.func)


def is_split_step(facts: TraceIndex, found: Accumulation) -> bool:
    """Returns whether the source shows that the passes share the work of one step.

    A condition in their loop decides when to step, or they are given parts of one tensor. Losses of several tasks may
    be added up as they are.
    """
    site, step = found.passes[0].site, found.step.site
    if step is None or facts.scope(site) != facts.scope(step):
        return False
    return _steps_conditionally(facts, site, step) or use_parts(facts, found.passes)


def _steps_conditionally(facts: TraceIndex, site: int, step: int) -> bool:
    """Returns whether a loop has the pass in its body, and the step below an `if` of its body."""
    passed, stepped = facts.trace.sites[site].span, facts.trace.sites[step].span
    function = function_around(facts, passed.file, passed.line)
    scope = function if function is not None else facts.tree(passed.file)
    for loop in (node for node in ast.walk(scope) if isinstance(node, ast.For | ast.While)):
        choices = [each for each in loop.body if isinstance(each, ast.If)]
        around = [each for each in choices if _holds(each, stepped.line) and not _holds(each, passed.line)]
        if around and _holds(loop, passed.line):
            return True
    return False


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def use_parts(facts: TraceIndex, passes: tuple[Backward, ...]) -> bool:
    """Returns whether the losses of all passes were computed from parts of one tensor, each from another."""
    parts = [_parts(facts, each) for each in passes]
    wholes = set.intersection(*({whole for whole, _ in each} for each in parts))
    return any(len({part for each in parts for owner, part in each if owner == whole}) >= len(passes)
               for whole in wholes)  # fmt: skip


def _parts(facts: TraceIndex, backward: Backward) -> set[tuple[int, int]]:
    """Returns (tensor, part of it) for the parts that a root was computed from and that have no history."""
    found: set[tuple[int, int]] = set()
    for number, call in ancestry(facts, backward.roots[0].tensor, backward.index):
        if call.inputs and not facts.requires_grad(number, call.index):
            if op_name(call) in _PARTS or (op_name(call) == "getitem" and _is_variable(facts, call)):
                found.add((call.inputs[0].tensor, number))
    return found


def _is_variable(facts: TraceIndex, call: Call) -> bool:
    """Returns whether an index has a name in it, so that it can be another one each time. Masks choose groups."""
    if any(facts.tensor(each.tensor).dtype == "bool" for each in call.inputs[1:]):
        return False
    node = facts.names.syntax.node(facts.trace.sites[call.site].span)
    return isinstance(node, ast.Subscript) and any(isinstance(each, ast.Name) for each in ast.walk(node.slice))


# --- passes that no step uses ----------------------------------------------------------------------------------------


def discarded_passes(training: Training) -> Iterator[Discarded]:
    """Yields the passes whose gradients were all cleared unused, although steps use other passes of the same line.

    A program that reads the gradients, or that decides by a value of torch to skip a step, does so on purpose.
    Those before the first update by hand may warm up the machine.
    """
    if _has_hooks(training.facts):
        return
    used: dict[int, set[int]] = {}
    lost: dict[tuple[int, int], set[int]] = {}
    later = _next_moments(training)
    for backward in training.facts.backwards:
        moments = [later.get((change.tensor, backward.index)) for change in backward.gradients]
        kinds = {None if moment is None else moment.kind for moment in moments}
        if kinds == {"clear"} and _is_unused(training, backward, [m for m in moments if m is not None]):
            cleared = moments[0].event.site if moments[0] is not None else None
            lost.setdefault((backward.site, -1 if cleared is None else cleared), set()).add(backward.index)
        elif "update" in kinds:
            used.setdefault(backward.site, set()).add(backward.index)
    for (site, cleared), passes in lost.items():
        if site in used and (training.stepped or max(passes) > min(used[site])):
            total = sum(each.site == site and not each.failed for each in training.facts.backwards)
            yield Discarded(site, None if cleared == -1 else cleared, len(passes), total)


def _has_hooks(facts: TraceIndex) -> bool:
    """Returns whether the program gives a function to PyTorch that may keep the gradients of a pass."""
    names = (node.attr for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return not _HOOKS.isdisjoint(names)


def _next_moments(training: Training) -> dict[tuple[int, int], Moment]:
    """Maps (leaf, index of a pass that filled its gradient) to the next clearing or update of it."""
    found: dict[tuple[int, int], Moment] = {}
    for number, moments in training.moments.items():
        waiting: list[int] = []
        for moment in moments:
            if moment.kind == "fill":
                waiting.append(moment.index)
            elif moment.kind in ("clear", "update"):
                found.update({(number, index): moment for index in waiting})
                waiting = []
    return found


def _is_unused(training: Training, backward: Backward, cleared: list[Moment]) -> bool:
    """Returns whether nothing read the gradients of a pass before they were cleared, and no finding is about them."""
    leaves = {change.tensor for change in backward.gradients}
    held = {change.held for change in backward.gradients if change.held is not None}
    end = max(moment.index for moment in cleared)
    is_stepped = bool(leaves & training.stepped) or any(_is_moved_by_hand(training, leaf) for leaf in leaves)
    if leaves & inspected_gradients(training) or not is_stepped or is_chosen(training, backward.index, end):
        return False
    between = calls_between(training.facts, backward.index, min(moment.index for moment in cleared))
    if any(access.tensor in held for call in between for access in call.inputs):
        return False
    return all(cleared_gradients(training, leaf) is None for leaf in leaves & training.stepped)


def _is_moved_by_hand(training: Training, leaf: int) -> bool:
    """Returns whether lines of the script update a leaf by its gradient."""
    return any(moment.kind == "update" and moment.fresh for moment in training.moments.get(leaf, ()))

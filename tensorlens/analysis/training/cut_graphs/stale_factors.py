"""Finds values of a trained number that a line computes once, before training, and that losses use after its steps.

`self.alpha = self.log_alpha.exp().detach()` in a constructor keeps the first value, whatever the steps do to
`log_alpha`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.shown_numbers import is_only_shown
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.cut_graphs.bound_numbers import HIDDEN, BoundNumber, bound_numbers
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.timeline import DATA_SET, Training
from tensorlens.records.model import Call

_CURVED = frozenset("exp softplus sigmoid logsigmoid log_softmax softmax tanh".split())
_NUMBERS = frozenset(("Tensor.item", "Tensor.__float__"))
_GIVING = frozenset((DATA_SET, "Tensor.numpy", "Tensor.__array__"))
_OF_START = frozenset("fixed initial init start begin first unit baseline frozen reference ref old prior".split())
_MAX_CALLS = 8
_MIN_PASSES = _MIN_STEPS = 3


@dataclass(frozen=True, slots=True)
class StaleFactor:
    """A value of a parameter that is older than its steps."""

    parameter: int
    made: Call  # the last of the calls that computed the value, all before the first step of the parameter
    used: Call  # in a loss, with nothing else that is computed from the parameter
    steps: int  # of the parameter before the last such use that was looked at
    passes: int


def stale_factors(training: Training) -> Iterator[StaleFactor]:
    """Yields these values, one for each line that computes them, if no pass that uses one trains the parameter.

    Where a pass does, the value may be an anchor, as that of a penalty for moving away.
    """
    facts, found = training.facts, dict[int, list[tuple[int, Call, Call]]]()
    numbers, anchors = _kept_numbers(facts), set[int]()
    bound = _bound_numbers(training)
    for backward in examined_passes(facts):
        trained, seen = {change.tensor for change in backward.gradients if change.after is not None}, set[int]()
        uses = [
            (parameter, made, call)
            for call in recorded_above(facts, backward)
            for parameter, made in (*_tensors(training, call), *_numbers(training, numbers, bound, call))
        ]
        for parameter, made, call in uses:
            if parameter in trained or _is_beside_fresh(training, parameter, made, uses):
                anchors.add(made.site)
            elif made.site not in seen:
                seen.add(made.site)
                found.setdefault(made.site, []).append((parameter, made, call))
    times = Counter(call.site for call in facts.calls if call.site in found)
    for site, uses in found.items():
        if len(uses) < _MIN_PASSES or site in anchors:
            continue
        parameter, made, used = uses[-1]
        steps = [step.index for step in training.steps if parameter in step.parameters]
        earlier = sum(made.index < index < used.index for index in steps)
        is_once = (
            len({each.index for _, each, _ in uses}) == 1 and times[site] == 1 and not _is_set_again(training, made)
        )
        if is_once and steps and made.index < steps[0] and earlier >= _MIN_STEPS:
            yield StaleFactor(parameter, made, used, earlier, len(uses))


def _is_beside_fresh(training: Training, parameter: int, made: Call, uses: list[tuple[int, Call, Call]]) -> bool:
    """Returns whether the same loss uses a value of a parameter that was computed after one of its steps, too: the
    older one is there to compare with."""
    later = [each.index for number, each, _ in uses if number == parameter and each.index > made.index]
    steps = (step.index for step in training.steps if parameter in step.parameters) if later else ()
    return any(made.index < index < max(later) for index in steps)


def _is_set_again(training: Training, made: Call) -> bool:
    """Returns whether a line may give a value anew, also as a number that a line takes of the same parameter later."""
    facts = training.facts
    if is_given_anew(facts, made):
        return True
    if made.op not in _NUMBERS:
        return False
    parameter = _parameter_below(training, made)
    later = (call for call in facts.calls_between(made.index + 1) if call.op in _NUMBERS)
    return any(_parameter_below(training, call) == parameter and not is_only_shown(facts, call) for call in later)


def is_given_anew(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a line may give the results of a call anew: by `.data`, or by their memory as an array."""
    own = {access.tensor for access in made.outputs}
    return any(call.op in _GIVING and call.inputs and call.inputs[0].tensor in own for call in facts.calls)


def _tensors(training: Training, call: Call) -> Iterator[tuple[int, Call]]:
    """Yields the constants that a call of a loss uses and that are computed from one parameter alone."""
    facts = training.facts
    if len(call.inputs) < 2:
        return
    for access in call.inputs:
        if not facts.requires_grad(access.tensor, call.index - 1):
            made = next(iter(facts.producers(access.tensor, call.index)), None)
            parameter = None if made is None else _parameter_below(training, made)
            names = () if made is None else facts.trace.sites[made.site].targets
            if made is not None and parameter is not None and not any(map(is_of_start, names)):
                yield parameter, made


def _parameter_below(training: Training, call: Call) -> int | None:
    """Returns the trained parameter that a call and those before it compute a value from, by a function of it alone."""
    facts, is_curved = training.facts, False
    for _ in range(_MAX_CALLS):
        if len(call.inputs) != 1 or call.writes or call.within:
            return None
        is_curved |= op_name(call) in _CURVED
        number = call.inputs[0].tensor
        if number in training.stepped:
            return number if is_curved and prod(facts.tensor(number).shape) == 1 else None
        made = next(iter(facts.producers(number, call.index)), None)
        if made is None:
            return None
        call = made
    return None


def _numbers(
    training: Training, kept: dict[str, Call], bound: list[BoundNumber], call: Call
) -> Iterator[tuple[int, Call]]:
    """Yields the numbers that the line of a call of a loss reads by name, and that a line computed from a parameter."""
    span = training.facts.span(call.site) if kept or bound else None
    node = None if span is None else training.facts.names.syntax.node(span)
    if span is None or node is None:
        return
    parts = ast.walk(node) if kept else ()
    read = {ast.unparse(each) for each in parts if isinstance(each, ast.Name | ast.Attribute | ast.Subscript)}
    given = [each.made for each in bound if not is_of_start(each.name) and each.is_read_by(span.file, node)]
    for made in (*(kept[name] for name in read & kept.keys()), *given):
        parameter = _parameter_below(training, made)
        if parameter is not None and made.index < call.index:
            yield parameter, made


def _bound_numbers(training: Training) -> list[BoundNumber]:
    """Returns the names that stand for a number which one call has computed from a parameter before its steps."""
    facts = training.facts
    first = training.steps[0].index if training.steps else 0
    times = Counter(call.site for call in facts.calls if call.op in _NUMBERS)
    made = (call for call in facts.calls_between(0, first) if call.op in _NUMBERS and times[call.site] == 1)
    return [
        each for call in made if _parameter_below(training, call) is not None for each in bound_numbers(facts, call)
    ]


def _kept_numbers(facts: TraceIndex) -> dict[str, Call]:
    """Maps each variable that one line of the program sets, to a number of a tensor, to the call that made it."""
    kept = dict[str, Call]()
    for call in facts.calls:
        targets = facts.trace.sites[call.site].targets if call.op in _NUMBERS else ()
        if len(targets) == 1:
            kept.setdefault(targets[0], call)
    return {name: call for name, call in kept.items() if not is_of_start(name) and _is_kept(facts, name)}


def is_of_start(name: str) -> bool:
    """Returns whether a name says that its value is to stay that of the start: `alpha_fixed`, `scale0`."""
    last = _last(name)
    return last.endswith("0") or bool(set(words_of(last)) & _OF_START)


def _is_kept(facts: TraceIndex, name: str) -> bool:
    """Returns whether one place sets a variable, or an item of a dict with a text as its key."""
    node = ast.parse(name, mode="eval").body if name.endswith("]") else None
    if not isinstance(node, ast.Subscript):
        return node is None and _is_bound_once(facts, _last(name))
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return isinstance(key, str) and _is_item_set_once(facts, _last(ast.unparse(node.value)), key)


def _is_item_set_once(facts: TraceIndex, holder: str, key: str) -> bool:
    """Returns whether one place sets an item, and each line that reads the dict reads an item with a written key."""
    files, bound = {site.span.file for site in facts.trace.sites}, 0
    for file, tree in facts.trees():
        if file not in files or (holder not in facts.trace.sources[file] and key not in facts.trace.sources[file]):
            continue
        items = {id(node.value): node for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.Attribute):
                last = _last(ast.unparse(node))
                item = items.get(id(node))
                is_item = item is not None and isinstance(item.slice, ast.Constant)
                if last in HIDDEN or (last == holder and isinstance(node.ctx, ast.Load) and not is_item):
                    return False
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                bound += node.slice.value == key and not isinstance(node.ctx, ast.Load)
            elif isinstance(node, ast.arg | ast.keyword):
                bound += node.arg in (holder, key)
            elif isinstance(node, ast.Dict):
                bound += any(isinstance(each, ast.Constant) and each.value == key for each in node.keys)
    return bound == 1


def _is_bound_once(facts: TraceIndex, name: str) -> bool:
    """Returns whether one place of the files that have a name binds it, or sets an attribute of this name: another
    variable may have the same object."""
    files = {site.span.file for site in facts.trace.sites}
    bound = 0
    for file, tree in facts.trees():
        if file not in files or name not in facts.trace.sources[file]:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.Attribute):
                last = _last(ast.unparse(node))
                if last in HIDDEN:
                    return False
                bound += last == name and not isinstance(node.ctx, ast.Load)
            elif isinstance(node, ast.arg | ast.keyword):
                bound += node.arg == name
    return bound == 1


def _last(name: str) -> str:
    return name.rpartition(".")[2]

"""Finds single numbers with a graph that no backward pass uses: losses of a loop but the last, and forgotten terms."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from tensorlens.analysis.code_around import is_inside
from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import is_number, op_name
from tensorlens.analysis.training.loss_calls import is_arithmetic, recorded_above
from tensorlens.analysis.training.number_terms import differentiated
from tensorlens.analysis.training.timeline import Training
from tensorlens.analysis.unread_fields import unread_fields
from tensorlens.records.model import Backward, Call, Span

_MIN_ROUNDS = 3
_MOST_NESTED = 4  # transforms
_TERM = frozenset(
    "loss kl kld penalty reg regularizer residual commit commitment physics smoothness consistency balance aux "
    "balancing".split()
)
_PARTS = frozenset("getitem view reshape squeeze unsqueeze flatten float double long to detach clone expand".split())
_FILLED = frozenset("zeros_like ones_like full_like new_zeros new_ones new_full".split())
_MOST_PARTS = 6
_Window = tuple[int, int]  # the index of the backward pass before, and where the next one begins


@dataclass(frozen=True, slots=True)
class LastLossOnly:
    """A line that computes several losses before each of its backward passes, of which each pass uses the last."""

    call: Call  # the first
    backward: Backward  # the first pass
    losses: int  # before each pass, at least
    passes: int


@dataclass(frozen=True, slots=True)
class ForgottenTerm:
    """A line that computes single numbers from trained parameters, which nothing reads."""

    call: Call
    times: int
    leaves: frozenset[int]  # the trained parameters


def last_losses_only(training: Training) -> Iterator[LastLossOnly]:
    """Yields these lines. They have computed several losses before each of their passes.

    A program may choose one of several losses by their values, or evaluate with the line that computes its loss: it
    compares the others, or reads them where it does not read the one that it trains. What a state becomes over several
    rounds may be compared with the same target in each of them.
    """
    facts = training.facts
    windows = _windows(facts)
    for calls in _numbers(facts).values():
        unused = [call for call in calls if call.outputs[0].tensor not in differentiated(facts)]
        roots = {call.outputs[0].tensor for call in calls}
        own = [(window, each) for window, each in windows if any(root.tensor in roots for root in each.roots)]
        if len(own) < _MIN_ROUNDS or not unused or not all(_uses_last(calls, *each) for each in own):
            continue
        counts = [sum(begin < call.index < end for call in unused) for (begin, end), _ in own]
        if _are_of_one_state(facts, calls, own[0]):
            continue
        if min(counts) and not _are_chosen(facts, unused, {root.tensor for _, each in own for root in each.roots}):
            yield LastLossOnly(calls[0], own[0][1], 1 + min(counts), len(own))


def _uses_last(calls: list[Call], window: _Window, backward: Backward) -> bool:
    """Returns whether a pass begins at what the last of some calls before it has made."""
    begin, end = window
    last = [call.outputs[0].tensor for call in calls if begin < call.index < end][-1:]
    return bool(last) and last[0] in {root.tensor for root in backward.roots}


def _are_of_one_state(facts: TraceIndex, calls: list[Call], first: tuple[_Window, Backward]) -> bool:
    """Returns whether the losses before a pass are those of a state that each round changes, with the same target."""
    (begin, end), backward = first
    rounds = [call for call in calls if begin < call.index < end]
    counts = Counter(call.site for call in recorded_above(facts, backward) if call.index > begin)
    if len(rounds) < 2 or max(counts.values(), default=0) < len(rounds):
        return False
    *others, last = (_targets(facts, call) for call in rounds)
    return any(last <= other for other in others)


def _targets(facts: TraceIndex, loss: Call) -> set[int]:
    """Returns the data that the arithmetic of a loss reads: the tensors that they are a part of."""
    waiting, seen, found = [(loss, access.tensor) for access in loss.inputs], set[int](), set[int]()
    for user, number in waiting:
        made = next(iter(facts.producers(number, user.index)), None)
        if not facts.requires_grad(number, user.index - 1):
            found |= _origin(facts, number, user.index)
        elif made is not None and made.index not in seen and is_arithmetic(made):
            seen.add(made.index)
            waiting += [(made, access.tensor) for access in made.inputs]
    return found


def _origin(facts: TraceIndex, number: int, before: int) -> set[int]:
    """Returns the tensor that data are a part of, if no variable says which part. None of values that a call fills in,
    as `zeros_like()` does."""
    for _ in range(_MOST_PARTS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) not in _PARTS or len(made.inputs) != 1:
            return set() if made is not None and (not made.inputs or op_name(made) in _FILLED) else {number}
        node = facts.node_at(made.site)
        index = node.slice if isinstance(node, ast.Subscript) else None
        if op_name(made) == "getitem" and (index is None or any(isinstance(e, ast.Name) for e in ast.walk(index))):
            return {number}
        number, before = made.inputs[0].tensor, made.index
    return {number}


def _are_chosen(facts: TraceIndex, unused: list[Call], used: set[int]) -> bool:
    """Returns whether an expression reads unused losses in a comparison, to order them, or reads no used one."""
    others = {call.outputs[0].tensor for call in unused}
    inputs: dict[int, set[int]] = defaultdict(set)
    for call in facts.calls:
        inputs[call.site] |= {access.tensor for access in call.inputs}
    spans = [facts.span(site) for site, numbers in inputs.items() if numbers & others]
    if any(not numbers & used for numbers in inputs.values() if numbers & others):
        return True
    kinds = ast.Compare | ast.Lambda
    nodes = ((file, node) for file, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, kinds))
    places = [facts.span_of(node, file) for file, node in nodes]
    return any(span is not None and is_inside(span, place) for span in spans for place in places)


def forgotten_terms(training: Training) -> Iterator[ForgottenTerm]:
    """Yields these lines. They assign the number to a name, an attribute or a field that no line reads: one that is
    printed does not count. The name says that the number is a term: others are there to be looked at."""
    facts = training.facts
    read = {access.tensor for call in facts.calls for access in call.inputs}
    numbers, fields = _numbers(facts), None
    for calls in numbers.values():
        results = {call.outputs[0].tensor for call in calls}
        if len(calls) < _MIN_ROUNDS or results & (read | differentiated(facts)):
            continue
        fields = _fields(facts, numbers, read) if fields is None else fields
        if not _is_unread(facts, calls[0], fields):
            continue
        leaves = graph_leaves(facts, calls[0].outputs[0].tensor, calls[0].index + 1) & training.stepped
        if leaves:
            yield ForgottenTerm(calls[0], len(calls), frozenset(leaves))


def _fields(facts: TraceIndex, numbers: dict[int, list[Call]], read: set[int]) -> list[tuple[str, ast.expr]]:
    """Returns the values that are given to unread fields of containers of terms, each with its file.

    A container of results may have a number that is there to be looked at. So two others of its fields have to be
    numbers with a graph that calls read, or one, if the name of the field says that it is a term.
    """
    used = {facts.span(site) for site, calls in numbers.items() if calls[0].outputs[0].tensor in read}
    found: list[tuple[str, ast.expr]] = []
    for file, field in unread_fields(facts):
        terms = sum(not used.isdisjoint(_spans(facts, file, other)) for other in field.others)
        if terms > 1 or (terms and _TERM & set(words_of(field.name))):
            found.append((file, field.value))
    return found


def _spans(facts: TraceIndex, file: str, value: ast.expr) -> set[Span]:
    """Returns the place of an expression, or those of what the file assigns to it, if it is a name."""
    if not isinstance(value, ast.Name):
        return {facts.span_of(value, file)}
    assigned = (node for node in ast.walk(facts.tree(file)) if isinstance(node, ast.Assign))
    return {
        facts.span_of(node.value, file) for node in assigned if value.id in {_name_of(each) for each in node.targets}
    }


def _is_unread(facts: TraceIndex, call: Call, fields: list[tuple[str, ast.expr]]) -> bool:
    """Returns whether the source gives the result of a call to a name, or an attribute, that it never reads, or to one
    of some fields."""
    span = facts.span(call.site)
    if span is None:
        return False
    if any(facts.span_of(value, file) == span for file, value in fields):
        return True
    for statement in ast.walk(facts.tree(span.file)):
        if isinstance(statement, ast.Assign) and facts.span_of(statement.value, span.file) == span:
            names = {_name_of(target) for target in statement.targets}
            if any(name is None or name.startswith("_") or not _TERM & set(words_of(name)) for name in names):
                return False
            nodes = (node for _, each in facts.trees() for node in ast.walk(each))
            given = [value for _, value in fields]
            reads = (node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Load) and node not in given)
            return names.isdisjoint(map(_name_of, reads))
    return False


def _name_of(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _numbers(facts: TraceIndex) -> dict[int, list[Call]]:
    """Maps lines to their calls that made a single number with a graph, outside of `vmap()` and other transforms: these
    return what they compute as other tensors."""
    found: dict[int, list[Call]] = defaultdict(list)
    transforms = [call for call in facts.calls if call.op.startswith("func.")]
    for call in facts.calls:
        place = bisect_left(transforms, call.index, key=attrgetter("index"))
        if any(_has_nodes(each, call) for each in transforms[place : place + _MOST_NESTED]):
            continue
        if len(call.outputs) == 1 and not call.within and not call.writes and call.nodes[1] > call.nodes[0]:
            number = call.outputs[0].tensor
            if is_number(facts, number) and number not in {access.tensor for access in call.inputs}:
                found[call.site].append(call)
    return found


def _has_nodes(whole: Call, part: Call) -> bool:
    return whole.nodes[0] <= part.nodes[0] and part.nodes[1] <= whole.nodes[1]


def _windows(facts: TraceIndex) -> list[tuple[_Window, Backward]]:
    passes = [each for each in facts.backwards if not each.failed]
    return [((passes[n - 1].index if n else -1, each.started), each) for n, each in enumerate(passes)]

"""Finds zeros that an optimizer of the program keeps for an average, reads at each step and never writes."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.code_around import class_around, statement_around
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.optimizers.state_places import assigned_pairs, root_of, state_of
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.analysis.training.value_ranges import SHARING
from tensorlens.records.model import Call

_ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))
_AVERAGING = frozenset("lerp mul rmul add radd sub rsub addcmul addcdiv".split())
_PRODUCTS = frozenset(("mul", "rmul"))
_BLENDS = _PRODUCTS | {"lerp"}
_FEWEST = 3  # steps that read a state


@dataclass(frozen=True, slots=True)
class UnwrittenState:
    """The call that makes the zeros, the one that reads them, and how often it reads one of them."""

    made: Call
    read: Call
    times: int


def unwritten_states(training: MeasuredTraining) -> Iterator[UnwrittenState]:
    """Yields these states, one for each line that makes them, if nothing writes to any of the tensors of the line.

    A step must compute the average into a variable: the one that it has read the state from, as in
    `m = torch.lerp(m, ...)`, or another one, if it blends the state with a gradient.
    """
    facts = training.facts
    reads = _Reads(training)
    by_line: dict[int, list[int]] = defaultdict(list)
    for number, call in reads.made.items():
        by_line[call.site].append(number)
    steps = [step.index for step in training.training.steps] or [event.index for event in facts.backwards]
    for numbers in by_line.values():
        if any(facts.storages_of(number) & reads.written for number in numbers):
            continue
        number = max(numbers, key=lambda each: len(reads.of[each]))
        found = next((call for call in reads.of[number] if _is_lost(training, call, reads.made[number])), None)
        same = [call for call in reads.of[number] if found is not None and call.site == found.site]
        is_often = len({bisect_left(steps, call.index) for call in same}) >= _FEWEST
        if found is not None and is_often and reads.are_alone(found, numbers):
            yield UnwrittenState(reads.made[number], found, len(same))


class _Reads:
    """The zeros of a run that have the shape of a parameter, and the calls that read them as they were made."""

    def __init__(self, training: MeasuredTraining) -> None:
        facts = training.facts
        self.made: dict[int, Call] = {}
        self.of: dict[int, list[Call]] = defaultdict(list)
        self.written: set[int] = set()
        self._places: dict[tuple[int, str], list[Call]] = defaultdict(list)
        shapes = {facts.tensor(number).shape for number in training.training.leaves}
        owners = _owners(training)
        files = {tree for _, tree in facts.trees()}
        for call in facts.calls if owners else ():
            changed = {write.tensor for write in call.writes}
            if call.op in SHARING or call.op in (DATA_SET, "Tensor.set_"):
                changed |= {access.tensor for access in call.inputs}
            self.written |= {storage for number in changed for storage in facts.storages_of(number)}
            is_zeros = op_name(call) in _ZEROS and len(call.outputs) == 1
            if is_zeros and facts.tensor(call.outputs[0].tensor).shape in shapes:
                if root_of(facts, call.site) in owners | files:
                    self.made[call.outputs[0].tensor] = call
            elif op_name(call) in _AVERAGING and root_of(facts, call.site) in owners:
                self._places[call.site, call.op].append(call)
                for access in call.inputs:
                    if access.tensor in self.made and access.tensor not in changed and not access.version:
                        self.of[access.tensor].append(call)

    def are_alone(self, read: Call, numbers: list[int]) -> bool:
        """Returns whether a line reads nothing but these zeros. If a loop goes on from them, it reads the result."""
        known = {*numbers}
        return all(known & {access.tensor for access in call.inputs} for call in self._places[read.site, read.op])


def _is_lost(training: MeasuredTraining, read: Call, made: Call) -> bool:
    """Returns whether a line assigns the average that it computes to a variable, and to nothing else."""
    facts = training.facts
    span = facts.span(read.site)
    statement = None if span is None else statement_around(facts, span)
    node = None if span is None else facts.names.syntax.node(span)
    if node is None or not isinstance(statement, ast.Assign | ast.AnnAssign):
        return False
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    targets = [
        target.id
        for target, value in assigned_pairs(statement)
        if isinstance(target, ast.Name) and any(each is node for each in ast.walk(value))
    ]
    state = state_of(facts, made)
    if len(targets) != 1 or state is None or state.may_be_written():
        return False
    is_own = span is not None and _is_optimizer(class_around(facts, span.file, span.line))
    if targets[0] in names and targets[0] in state.aliases:
        return is_own or _takes_gradient(training, read)
    return op_name(read) in _BLENDS and _takes_gradient(training, read)


def _takes_gradient(training: MeasuredTraining, read: Call) -> bool:
    """Returns whether a call reads a value of a gradient, too, or the next one with its result does."""
    facts, (output,) = training.facts, [access.tensor for access in read.outputs[:1]] or [-1]
    after = (each for each in facts.calls_between(read.index + 1) if output in {a.tensor for a in each.inputs})
    calls = [read, *islice(after, 1)] if op_name(read) in _PRODUCTS else [read]
    shape = facts.tensor(output).shape if output >= 0 else ()
    leaves = [number for number in training.training.had_gradient if facts.tensor(number).shape == shape]
    return any(training.training.uses_gradient(call, leaf) for call in calls for leaf in leaves)


def _owners(training: MeasuredTraining) -> set[ast.AST]:
    """Returns the code that updates parameters by their gradients: optimizers of the program, or what acts as one."""
    facts, found = training.facts, _optimizers(training.facts)
    moments = training.training.moments
    for number in training.training.had_gradient - training.training.stepped:
        last = next((each for each in reversed(moments.get(number, [])) if each.kind == "update" and each.fresh), None)
        if last is not None and isinstance(last.event, Call) and not last.event.within:
            root = root_of(facts, last.event.site)
            found |= set() if root is None else {root}
    return found


def _optimizers(facts: TraceIndex) -> set[ast.AST]:
    """Returns the code at the top level of a file that is, or has, a class that is derived from an optimizer."""
    return {node for _, tree in facts.trees() for node in tree.body if any(map(_is_optimizer, ast.walk(node)))}


def _is_optimizer(node: ast.AST | None) -> bool:
    names = [plain_name(base) or "" for base in node.bases] if isinstance(node, ast.ClassDef) else []
    return any("optim" in name.split(".")[:-1] or "Optimizer" in name.rpartition(".")[2] for name in names)

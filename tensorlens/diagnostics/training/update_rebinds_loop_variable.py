"""Finds the cause of `update-rebinds-loop-variable`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from tensorlens.analysis.code_around import statement_at
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.parameters_without_gradient import changed_since
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.shared.edits.writes import copied_into
from tensorlens.diagnostics.shared.optimizers import born, titled
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic, Edit

MAX_CALLS = 50


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    used = {access.tensor for call in facts.calls for access in call.inputs}
    used |= {root.tensor for backward in facts.backwards for root in backward.roots}
    returned = _returned_by_grad(facts)
    unstepped = (training.had_gradient | set(returned)) - training.stepped
    if not unstepped and not training.stepped:
        return
    groups: dict[int, list[tuple[int, Call]]] = {}
    for call in facts.calls:
        if call.writes or call.within or not call.outputs or call.outputs[0].tensor in used:
            continue
        number = _leaf_not_updated(training, call, returned, unstepped)
        number = _average_not_updated(training, call) if number is None else number
        if number is not None and _is_still_in_use(facts, number, call) and not _is_kept(facts, call):
            groups.setdefault(call.site, []).append((number, call))
    for group in groups.values():
        yield _report(facts, group)


def _leaf_not_updated(training: Training, call: Call, returned: dict[int, int], unstepped: set[int]) -> int | None:
    """Finds the leaf for which `call` computed a new value from its gradient, while the leaf itself stayed the same."""
    targets = set(training.facts.trace.sites[call.site].targets)
    for number, names in _leaves_read(training.facts, call, unstepped) if targets else ():
        if number in unstepped and names & targets and not training.is_updated(number):
            is_returned = returned.get(number, call.index) < call.index < _last_use(training.facts, number)
            if is_returned or training.uses_gradient(call, number):
                return number
    return None


def _returned_by_grad(facts: TraceIndex) -> dict[int, int]:
    """Maps the leaves whose gradients `autograd.grad` returned to the first such pass."""
    first: dict[int, int] = {}
    for backward in facts.backwards:
        for number in backward.inputs if not backward.failed else ():
            state = facts.state(number, backward.index)
            if state is not None and state.is_leaf:
                first.setdefault(number, backward.index)
    return first


def _last_use(facts: TraceIndex, number: int) -> int:
    """Returns the index of the last recorded call that used a tensor; -1 if there is none."""
    return _last_uses(facts).get(number, -1)


@lru_cache(maxsize=1)
def _last_uses(facts: TraceIndex) -> dict[int, int]:
    """Maps tensors to the last recorded call that used them. A long run asks for thousands of tensors."""
    return {access.tensor: call.index for call in facts.calls if call.mode == "grad" for access in call.inputs}


def _average_not_updated(training: Training, call: Call) -> int | None:
    """Finds the parameter of an averaged copy for which `call` computed a new value, while the copy stayed the same."""
    facts = training.facts
    targets = set(facts.trace.sites[call.site].targets)
    shape = facts.tensor(call.outputs[0].tensor).shape
    copy, trained = None, False
    for number, names in _leaves_read(facts, call, training.stepped) if targets else ():
        if facts.tensor(number).shape == shape:
            trained = trained or number in training.stepped
            copy = number if names & targets and number not in training.stepped else copy
    return copy if trained and copy is not None and not changed_since(training, copy, 0) else None


def _leaves_read(facts: TraceIndex, call: Call, leaves: set[int]) -> Iterator[tuple[int, set[str | None]]]:
    """Yields the parameters and `leaves` that the line of `call` computes with.

    Each comes with the names that the expression which reads it contains.
    """
    waiting, line = [call], place_of(facts.trace.sites[call.site])
    for made in waiting:
        site = facts.trace.sites[made.site]
        for number in {access.tensor for access in made.inputs}:
            before = facts.producers(number, made.index)[:1]
            if number in leaves or facts.tensor(number).type == "Parameter":
                yield number, {plain_name(node) for node in facts.names.syntax.operands(site, made.op)}
            elif before and place_of(facts.trace.sites[before[0].site]) == line and len(waiting) < MAX_CALLS:
                waiting += before


def _is_still_in_use(facts: TraceIndex, number: int, update: Call) -> bool:
    """Returns whether the script still uses the leaf: else the name that it was given anew was its last one, and the
    new tensor takes its place."""
    is_bound = bool(facts.names.all_names(number)) or facts.tensor(number).type == "Parameter"
    return is_bound or _last_use(facts, number) > update.index


def _is_kept(facts: TraceIndex, update: Call) -> bool:
    """Returns whether the new tensor has another name when the run ends, such as an item of a list."""
    targets = set(facts.trace.sites[update.site].targets)
    return not targets.issuperset(facts.names.all_names(update.outputs[0].tensor))


def _report(facts: TraceIndex, group: list[tuple[int, Call]]) -> Diagnostic:
    number, call = group[0]
    target = facts.trace.sites[call.site].targets[0]
    name, names = titled(facts, list(dict.fromkeys(entry[0] for entry in group)))
    return finding(
        "update-rebinds-loop-variable",
        "warning",
        f"the update of {name} changed nothing: it only gave the name `{target}` to a new tensor",
        "an assignment gives a name to a tensor; it writes into none, and nothing is computed from the new one",
        [
            facts.label("replaced_here", call.site, f"`{target}` is a new tensor from here on"),
            facts.label("leaf_made_here", born(facts, number), "never changed"),
        ],
        fixes=(
            fix(
                f"write into it under `torch.no_grad()`: put the new values into `{target}.copy_(...)`",
                *_writing(facts, call, target),
                place=facts.span(call.site),
            ),
        ),
        evidence={"parameters": [facts.name(entry[0]) for entry in group]},
        detail=names,
    )


def _writing(facts: TraceIndex, call: Call, target: str) -> tuple[Edit, ...]:
    """Turns `p = values` into a write of the values into `p`, which is not recorded."""
    span = facts.span(call.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ()
    if plain_name(statement.targets[0]) != target:
        return ()
    edit = copied_into(facts, span.file, statement, statement.value, is_recorded=call.mode == "grad")
    return () if edit is None else (edit,)

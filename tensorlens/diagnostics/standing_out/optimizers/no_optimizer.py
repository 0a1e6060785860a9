"""Names parameters that got gradients, and that no optimizer holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.timeline import FLAG_SETS, GRAD_READ
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds parameters with gradients that neither a step nor a write of the script changed."""
    if not training.measured.steps:
        return
    lasting = _lasting(training) - _given_on(training) - _read_alone(training)
    for module in training.modules:
        left = [row for row in module.rows if _is_left_out(training, row) and row.tensor in lasting]
        rows = [row for row in left if _is_trained_beside(training, row)]
        if rows:
            yield _sentence(training, rows)
    yield from _unfrozen(training)


def _is_left_out(training: MeasuredTraining, row: ParameterRow) -> bool:
    """Returns whether a step follows a gradient of a parameter that nothing changes. An optimizer may have held it
    before another parameter took its place."""
    if row.group is not None or not row.requires_grad or not row.passes or training.writes(row.tensor):
        return False
    if row.tensor in training.training.stepped:
        return False
    filled = training.training.first_fill(row.tensor)
    return filled is not None and any(step.index > filled.index for step in training.training.steps[-1:])


def _is_trained_beside(training: MeasuredTraining, row: ParameterRow) -> bool:
    """Returns whether a pass that gives a parameter its gradient gives one to parameters that steps change, too, or
    runs between steps of one optimizer. The optimizer of an adversarial input holds no parameter of a model, and the
    passes for the saliency of a model may end before another one is trained."""
    timeline = training.training
    fills = [moment for moment in timeline.moments.get(row.tensor, ()) if moment.kind == "fill"]
    passes = [fill.event for fill in fills if isinstance(fill.event, Backward)]
    beside = {change.tensor for each in passes for change in each.gradients} & timeline.stepped
    if beside:
        return any(training.facts.tensor(number).type.endswith("Parameter") for number in beside)
    indices = [[step.index for step in steps] for steps in timeline.optimizers]
    return any(steps[0] < fill.index < steps[-1] for steps in indices for fill in fills)


def _read_alone(training: MeasuredTraining) -> set[int]:
    """Returns the parameters whose gradients a line reads that reads none of parameters that steps change, as the
    Fisher information of a copy, or the gradients of a client, do."""
    timeline, sites, syntax = training.training, training.facts.trace.sites, training.facts.names.syntax
    read: dict[int, set[int]] = defaultdict(set)
    for call in training.facts.calls:
        if call.op == GRAD_READ:
            read[call.site].add(call.inputs[0].tensor)
    alone = (each for site, each in read.items() if syntax.is_direct(sites[site], GRAD_READ))
    return set().union(*(each for each in alone if each.isdisjoint(timeline.stepped)))


def _given_on(training: MeasuredTraining) -> set[int]:
    """Returns the parameters whose gradients a line reads and adds to, or sets as, those of parameters that steps use,
    as first-order meta-learning does with those of copies."""
    timeline, sites = training.training, training.facts.trace.sites
    changed = {
        place_of(sites[moment.event.site])
        for number in timeline.stepped
        for moment in timeline.moments.get(number, ())
        if isinstance(moment.event, Call) and moment.kind != "update" and not moment.event.within
    }
    read = (call for call in training.facts.calls if call.op == GRAD_READ and place_of(sites[call.site]) in changed)
    return {call.inputs[0].tensor for call in read} - timeline.stepped


def _unfrozen(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds parameters that a line unfreezes, and that only optimizers hold which make no step any more."""
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    by_site: dict[int, list[tuple[ParameterRow, Call]]] = defaultdict(list)
    for number, call in _last_unfrozen(training).items():
        row = training.row(number)
        if row is None or row.group is None or any(write.index > call.index for write in training.writes(number)):
            continue
        filled = training.training.last_fill(number)
        later = [step for step in training.training.steps if step.index > call.index]
        is_stepped = any(number in step.parameters for step in later)
        if filled is not None and filled.index > call.index and len(later) > 1 and not is_stepped:
            by_site[call.site].append((row, call))
    for found in by_site.values():
        rows, call = [row for row, _ in found], found[0][1]
        it, verb = ("it", "gets") if len(rows) == 1 else ("them", "get")
        step = training.training.steps[-1]
        yield stands_out(
            f"{listed(rows)} {verb} gradients after {as_written(facts, call)}, but no optimizer that steps from then "
            f"on holds {it}",
            facts.label("flag_changed_here", call.site, "unfrozen here", call.index),
            facts.label("needed_here", step.site, "steps other parameters"),
        )


def _last_unfrozen(training: MeasuredTraining) -> dict[int, Call]:
    """Maps parameters to the last call that made them require grad."""
    facts, found = training.facts, dict[int, Call]()
    for call in facts.calls:
        if call.op in FLAG_SETS and call.inputs:
            number = call.inputs[0].tensor
            now, before = facts.requires_grad(number, call.index), facts.requires_grad(number, call.index - 1)
            if now and not before:
                found[number] = call
    return found


def _lasting(training: MeasuredTraining) -> set[int]:
    """Returns the parameters, and the plain tensors that get a gradient in several passes without being looked at.

    Data that requires grad, as that of a gradient penalty, is usually new in each pass, or asked for its gradient.
    """
    names = Counter(row.name for row in training.rows)
    looked_at = {number for backward in training.facts.backwards for number in backward.inputs}
    looked_at |= training.training.gradient_read
    again = {n for n, each in training.statistics.items() if each.filled > 1} - looked_at
    return {row.tensor for row in training.rows if training.facts.tensor(row.tensor).type.endswith("Parameter")
            or (names[row.name] == 1 and row.tensor in again)}  # fmt: skip


def _optimizer_before(training: MeasuredTraining, rows: list[ParameterRow]) -> Call | None:
    """Returns the call that made the last optimizer, if it ran before all of some parameters were made."""
    made = [training.facts.creator(row.tensor) for row in rows]
    last = next((call for call in reversed(training.facts.calls) if call.op.startswith("optim.")), None)
    return last if last is not None and all(call is not None and call.index > last.index for call in made) else None


def _optimizer_beside(training: MeasuredTraining, rows: list[ParameterRow]) -> Label | None:
    """Labels the line that gives an optimizer other parameters: those of the same object, those that the first step
    after a gradient of these changes, or the only optimizer."""
    held = [row for row in training.rows if row.group is not None and row.group.steps]
    beside = [row for row in held if row.owner[:1] == rows[0].owner[:1]]
    filled = training.training.last_fill(rows[0].tensor)
    later = (step for step in training.training.steps if filled is not None and step.index > filled.index)
    step = next(later, None)
    with_it = [row for row in held if step is not None and row.tensor in step.parameters]
    sites = {row.group.site for row in beside or with_it or held if row.group is not None}
    if len(sites) != 1:
        return None
    return training.facts.label("optimizer_made_here", sites.pop(), "the optimizer is given others")


def _made_at(facts: TraceIndex, made: Call) -> int:
    """Returns the line that makes the object whose constructor makes a parameter, if that ran once. A constructor that
    makes an optimizer too is one of a trainer: its own line says more."""
    site, sites = made.site, facts.trace.sites
    training = {sites[call.site].function for call in facts.calls if call.op.startswith("optim.")}
    while sites[site].function.endswith(".__init__") and facts.times_run(site, made.index)[1] == 1:
        if sites[site].function in training:
            break
        caller = sites[site].caller
        if caller is None:
            break
        site = caller
    return site


def _sentence(training: MeasuredTraining, rows: list[ParameterRow]) -> StandingOut:
    facts = training.facts
    made = facts.first_use(rows[0].tensor)
    label = None if made is None else facts.label("leaf_made_here", _made_at(facts, made), "made here", made.index)
    passes = facts.label("needed_here", rows[0].passes[-1], "backward gives it a gradient")
    verb = "is" if len(rows) == 1 else "are"
    text = f"{listed(rows)} {verb} in no optimizer, but {'gets' if len(rows) == 1 else 'get'} gradients"
    before = _optimizer_before(training, rows)
    if before is None:
        return stands_out(text, label, _optimizer_beside(training, rows), passes)
    optimizer = facts.label("optimizer_made_here", before.site, "the optimizer is made here")
    return stands_out(f"{text}: {'it is' if len(rows) == 1 else 'they are'} made after the optimizer",
                      label, optimizer, passes)  # fmt: skip

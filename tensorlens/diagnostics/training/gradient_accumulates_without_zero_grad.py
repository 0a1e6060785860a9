"""Finds the cause of `gradient-accumulates-without-zero-grad`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import GRAD_READ, Moment, Training, training_of
from tensorlens.diagnostics.shared.edits.scopes import added_after, changed_name, is_visible, receiver
from tensorlens.diagnostics.shared.edits.statements import inserted_before
from tensorlens.diagnostics.shared.optimizers import optimizer_name, titled
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step
from tensorlens.records.report import Diagnostic, Edit, Fix, Label

CODE = "gradient-accumulates-without-zero-grad"
MAX_UPDATES = 3  # lines that update by hand, with a label each
MAX_CALLS = 100  # followed back from the values of an update


@dataclass(frozen=True, slots=True)
class Sum:
    """A gradient that backward added to one that an update had used already, and the update that used the sum."""

    leaf: int
    used: Moment | None
    added: Moment
    needed: Moment | None


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    sums = [sum_ for leaf in training.moments if (sum_ := _sum(training, leaf)) is not None]
    groups: dict[tuple[int | None, int | None], list[Sum]] = {}
    for sum_ in sums:
        groups.setdefault((sum_.added.event.site, _update_site(training, sum_.needed)), []).append(sum_)
    for group in groups.values():
        if group[0].needed is not None:
            yield _report(training, group, group[0].needed)
        elif not any(other.needed for other in sums):
            yield _note(facts, group)


def _update_site(training: Training, update: Moment | None) -> int | None:
    """Returns the line of an optimizer's step; -1 for all lines that update leaves by hand, None without an update."""
    if update is None:
        return None
    return -1 if _optimizer(training, update) is None else update.event.site


def _sum(training: Training, leaf: int) -> Sum | None:
    """Finds the first sum of gradients of a leaf that an update used. Without any update it is the first sum."""
    moments = training.moments[leaf]
    if not any(moment.kind == "update" for moment in moments):
        added = next((m for m in moments if m.kind == "fill" and not m.fresh), None)
        cleared = any(m.kind in ("clear", "touch") for m in moments)
        return None if added is None or cleared or training.steps else Sum(leaf, None, added, None)
    used: Moment | None = None
    added = None
    for moment in moments:
        if moment.kind == "clear" or (moment.kind == "fill" and moment.fresh) or (moment.kind == "touch" and not added):
            used = added = None
        elif moment.kind == "fill" and used is not None:
            added = added or moment
        elif moment.kind == "update" and used is not None and _puts_back(training.facts, leaf, moment, used):
            used = added = None
        elif moment.kind == "update" and _starts_anew(training.facts, leaf, moment):
            return None
        elif moment.kind == "update" and moment.fresh:
            if added is not None:
                return Sum(leaf, used, added, moment)
            used = moment
    return None


def _puts_back(facts: TraceIndex, leaf: int, moment: Moment, used: Moment) -> bool:
    """Returns whether an update undoes an earlier one: it gives the leaf values from before that."""
    call = moment.event
    if not isinstance(call, Call) or not call.op.endswith(("copy_", "data.__set__")) or len(call.inputs) < 2:
        return False
    source = call.inputs[-1].tensor
    made = facts.producers(source, call.index)[:1]
    return source != leaf and bool(made) and made[0].index < used.index


def _starts_anew(facts: TraceIndex, leaf: int, moment: Moment) -> bool:
    """Returns whether an update computes the new values without the old ones.

    Dual averaging does: it computes the values from the sum of all gradients, so the sum is meant.
    """
    call = moment.event
    if not isinstance(call, Call) or not call.op.endswith(("copy_", "data.__set__")) or len(call.inputs) < 2:
        return False
    storages = facts.storages_of(leaf)
    waiting = [(call.inputs[-1].tensor, call.index)]
    for number, limit in waiting:
        if facts.storage_of(number, call.index) in storages or len(waiting) > MAX_CALLS:
            return False
        made = (inner for inner in facts.producers(number, limit) if inner.op != GRAD_READ)
        waiting += [(access.tensor, inner.index) for inner in made for access in inner.inputs]
    return len(waiting) > 1


def _label(facts: TraceIndex, group: list[Sum], name: str) -> Label | None:
    text = "adds to their gradients" if len(group) > 1 else f"adds to the gradient of {name}"
    return facts.label("accumulated_here", group[0].added.event.site, text)


def _report(training: Training, group: list[Sum], needed: Moment) -> Diagnostic:
    facts, first = training.facts, group[0]
    name, names = titled(facts, [sum_.leaf for sum_ in group])
    optimizer = _optimizer(training, needed)
    who = "this update" if optimizer is None else f"`{optimizer}.step()`"
    sites = list(dict.fromkeys(sum_.needed.event.site for sum_ in group if sum_.needed is not None))
    assert first.used is not None
    again = "" if first.used.event.site == needed.event.site else f", after line {_line(facts, first.used)} used them"
    return finding(
        CODE,
        "warning",
        f"{who} used old gradients again: those of {name} were not cleared",
        f"backward adds to `.grad`, and nothing cleared it{again or ' since the update before'}: "
        "the new gradients were added to used ones",
        [
            _label(facts, group, name),
            *(
                facts.label("needed_here", site, "uses the sum of old and new gradients")
                for site in sites[:MAX_UPDATES]
            ),
        ],
        fixes=(_clearing(training, group, needed),),
        evidence={"parameters": [facts.name(sum_.leaf) for sum_ in group]},
        detail=(*names, *_values(facts, first)),
    )


def _line(facts: TraceIndex, moment: Moment) -> int:
    span = facts.span(moment.event.site)
    return 0 if span is None else span.line


def _clearing(training: Training, group: list[Sum], needed: Moment) -> Fix:
    """Says where to clear the gradients, so that no gradient is lost that the update is to use.

    If a pass is for another optimizer, as the generator's in a GAN, its gradients go too. If one line runs several
    passes for each update, they may be meant to add up, so the place is after the update. A closure runs several times
    for one step, so the place is before its first pass.
    """
    facts, first, own = training.facts, group[0], needed.event if isinstance(needed.event, Step) else None
    optimizer = _optimizer(training, needed)
    reset = "set `.grad = None`" if optimizer is None else f"call `{optimizer}.zero_grad()`"
    fills = [
        m for m in training.moments[first.leaf] if m.kind == "fill" and first.added.index <= m.index < needed.index
    ]
    lines = [fill.event.site for fill in fills]
    foreign = [fill for fill in fills[:-1] if own is not None and _is_for_another(training, fill, own)]
    after = fills[fills.index(foreign[-1]) + 1] if foreign else fills[0]
    in_closure = own is None and optimizer is not None
    updates = {sum_.needed.event.site: sum_.needed for sum_ in group if sum_.needed is not None}
    is_read = any(_is_read_after(training, sum_.leaf) for sum_ in group)
    found = list(updates.values()) if is_read else [needed] if optimizer is not None else []
    edits = _before_pass(facts, found, after)
    several = len(set(lines)) < len(lines) or (len(fills) > 1 and not foreign)
    if is_read and several:
        text = f"{reset} before the first pass of each update: after this line, the program reads the gradient"
        return fix(text, place=facts.span(needed.event.site))
    if not in_closure and not is_read and (several or (not edits and not foreign)):
        here = "this line: its" if len(updates) == 1 else "each of these lines: its"
        text = f"{reset} directly after {here} gradients are used then"
        added = [_after_update(facts, update) for update in updates.values()]
        known = [edit for edit in added if edit is not None] if None not in added else []
        return fix(text, *known, place=facts.span(needed.event.site))
    why = f": line {_line(facts, foreign[-1])} also fills these gradients" if foreign else ", each time"
    place = facts.span(after.event.site)
    return fix(f"{reset} directly before this line{why}", *edits, place=place)


def _is_read_after(training: Training, leaf: int) -> bool:
    """Returns whether the script reads a gradient between an update that used it and the next pass, as to log it."""
    facts = training.facts
    for call in facts.calls if leaf in training.gradient_read else ():
        if call.op == GRAD_READ and call.inputs[0].tensor == leaf:
            last = training.last_moment(leaf, call.index, "fill", "clear", "update")
            after = next((m for m in training.moments[leaf] if m.index > call.index), None)
            if last is not None and last.kind == "update" and (after is None or after.kind != "update"):
                return True
    return False


def _optimizer(training: Training, update: Moment) -> str | None:
    """Returns the name of the optimizer whose step made an update; None for an update by hand."""
    if isinstance(update.event, Step):
        return optimizer_name(training, update.event)
    if isinstance(update.event, Call) and update.event.within:
        return receiver(training.facts, update.event.site, "step") or update.event.within.removesuffix(".step")
    return None


def _before_pass(facts: TraceIndex, updates: list[Moment], after: Moment) -> tuple[Edit, ...]:
    """Clears the gradients before a pass, by the names that an optimizer or leaves have at their updates."""
    place, codes = facts.span(after.event.site), list[str]()
    for update in updates:
        site = update.event.site
        name = receiver(facts, site, "step")
        leaf = None if isinstance(update.event, Step) or name is not None else changed_name(facts, site)
        known = name or leaf
        if known is None or place is None or site is None or after.event.site is None:
            return ()
        if known in facts.names.syntax.loop_names() or not is_visible(facts, known, site, after.event.site):
            return ()
        codes.append(f"{name}.zero_grad()" if leaf is None else f"{leaf}.grad = None")
    edit = None if place is None or not codes else inserted_before(facts, place.file, place.line, "\n".join(codes))
    return () if edit is None else (edit,)


def _after_update(facts: TraceIndex, update: Moment) -> Edit | None:
    """Clears the gradients after an update: those of the optimizer, or of the leaf that a line changes by hand."""
    name = receiver(facts, update.event.site, "step")
    leaf = None if isinstance(update.event, Step) else changed_name(facts, update.event.site)
    if name is None and leaf is None:
        return None
    return added_after(facts, update.event.site, f"{leaf}.grad = None" if name is None else f"{name}.zero_grad()")


def _is_for_another(training: Training, fill: Moment, own: Step) -> bool:
    """Returns whether another optimizer's step was the first to use what a backward pass computed."""
    reached = {change.tensor for change in fill.event.gradients} if isinstance(fill.event, Backward) else set()
    step = next((step for step in training.steps if step.index > fill.index), None)
    return step is not None and step.parameters != own.parameters and not reached.isdisjoint(step.parameters)


def _values(facts: TraceIndex, first: Sum) -> tuple[str, ...]:
    """Returns the line with the values of the gradient before and after it was added to, if they are short."""
    event = first.added.event
    assert isinstance(event, Backward)
    change = next(c for c in event.gradients if c.tensor == first.leaf)
    if not (change.before or "").startswith("["):
        return ()
    return (f"the gradient of {named(facts, first.leaf, event.index)} was {change.before} and became {change.after}",)


def _note(facts: TraceIndex, group: list[Sum]) -> Diagnostic:
    first = group[0]
    name, names = titled(facts, [sum_.leaf for sum_ in group])
    place = facts.span(first.added.event.site)
    return finding(
        CODE,
        "note",
        f"backward added to the gradient that {name} had already",
        "`.grad` holds the sum of all backward passes since it was last cleared",
        [_label(facts, group, name)],
        fixes=(fix("for the gradient of one pass alone, set `.grad = None` before this line", place=place),),
        evidence={"parameters": [facts.name(sum_.leaf) for sum_ in group]},
        detail=(*names, *_values(facts, first)),
    )

"""Names statistics and random numbers that a module keeps as plain attributes, so that a loaded module has others."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.checkpoints_and_averages.restarted_attributes import (
    RestartedAttribute,
    restarted_attributes,
)
from tensorlens.analysis.training.checkpoints_and_averages.unsaved_attributes import (
    UnsavedAttribute,
    drawn_attributes,
    unsaved_attributes,
)
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, groups = training.facts, dict[int, list[UnsavedAttribute]]()
    for each in unsaved_attributes(facts):
        groups.setdefault(each.load.site, []).append(each)
    for found in groups.values():
        first, names = found[0], [f"`{name}`" for name in dict.fromkeys(each.name for each in found)]
        others = f", and {' and '.join(names[1:])} likewise" if len(names) > 1 else ""
        yield stands_out(
            f"after `load_state_dict()`, {as_written(facts, first.used)} uses {names[0]} as the constructor makes it"
            f"{others}: {as_written(facts, first.changed)} sets it in training, but {_kept(first.is_buffer)}, and "
            "`state_dict()` does not have it",
            facts.label("value_made_here", first.made.site, _made(first.is_buffer), first.made.index),
            facts.label("replaced_here", first.changed.site, "set in training", first.changed.index),
            facts.label("called_here", first.load.site, "loaded here", first.load.index),
            facts.label("needed_here", first.used.site, "used here", first.used.index),
        )
    yield from (_drawn(training, each) for each in drawn_attributes(facts))
    named = {each.made.index for found in groups.values() for each in found}
    lines = dict[int | None, list[RestartedAttribute]]()
    for begun in restarted_attributes(facts):
        if begun.made.index not in named:
            lines.setdefault(begun.load.site, []).append(begun)
    yield from (_restarted(training, found) for found in lines.values())


def _kept(is_buffer: bool) -> str:
    return "its buffer has `persistent=False`" if is_buffer else "it is no buffer"


def _made(is_buffer: bool) -> str:
    return "made here, with `persistent=False`" if is_buffer else "made here, not registered"


def _restarted(training: MeasuredTraining, found: list[RestartedAttribute]) -> StandingOut:
    facts, first = training.facts, found[0]
    names = [f"`{name}`" for name in dict.fromkeys(each.name for each in found)]
    others = f", and {' and '.join(names[1:])} likewise" if len(names) > 1 else ""
    return stands_out(
        f"after `load_state_dict()` of `{first.load.name}`, the training goes on, but {names[0]} begins anew{others}: "
        f"{as_written(facts, first.changed)} has changed the one before {first.times} times, but "
        f"{_kept(first.is_buffer)}, and no `state_dict()` has it",
        facts.label("value_made_here", first.made.site, _made(first.is_buffer), first.made.index),
        facts.label("replaced_here", first.changed.site, "changed in training", first.changed.index),
        facts.label("called_here", first.load.site, "loaded here"),
        facts.label("needed_here", first.used.site, "used here", first.used.index),
    )


def _drawn(training: MeasuredTraining, each: UnsavedAttribute) -> StandingOut:
    facts = training.facts
    return stands_out(
        f"after `load_state_dict()`, {as_written(facts, each.used)} uses the `{each.name}` that the constructor has "
        "drawn for this object, and not the one of the object that was trained: it is no buffer, and `state_dict()` "
        "does not have it",
        facts.label("value_made_here", each.made.site, "drawn here, not registered", each.made.index),
        facts.label("called_here", each.load.site, "loaded here", each.load.index),
        facts.label("needed_here", each.used.site, "used here", each.used.index),
    )

"""Names flags of modules and counts of optimizers that no state dict has, so that a loaded object begins anew."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.checkpoints_and_averages.unsaved_numbers import unsaved_counts, unsaved_flags
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import one_line


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for flag in unsaved_flags(facts):
        yield stands_out(
            f"after `load_state_dict()`, {as_written(facts, flag.write)} overwrites what is loaded: `{flag.name}` is "
            f"`{flag.value}` in a new module, it is no buffer, and `state_dict()` does not have it",
            Label("value_made_here", flag.start, "made here, not registered"),
            facts.label("modified_here", flag.write.site, "overwrites what is loaded", flag.write.index),
            facts.label("called_here", flag.load.site, "loaded here", flag.load.index),
        )
    seen = set[tuple[str, str]]()
    for count in unsaved_counts(training):
        if (count.name, count.load.name) not in seen:
            seen.add((count.name, count.load.name))
            yield stands_out(
                f"after `load_state_dict()`, the new `{count.load.name}` has the averages of earlier steps, and "
                f"`{count.name}` counts from the beginning: `{one_line(count.change_text, 40)}` changes an attribute, "
                "which `state_dict()` does not have",
                Label("value_made_here", count.start, "begins here"),
                Label("state_changed_here", count.change, "counts here"),
                facts.label("called_here", count.load.site, "loaded here"),
            )

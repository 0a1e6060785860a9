"""Names two attributes of an object, or two variables of a line, that are one tensor which the script changes."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.changed_in_place.shared_attributes import SharedAttributes, shared_attributes
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    for found in shared_attributes(training.facts):
        yield _sentence(training, found)


def _sentence(training: MeasuredTraining, found: SharedAttributes) -> StandingOut:
    facts, (first, second) = training.facts, found.names
    text = f"`{first}` and `{second}` are one tensor: "
    one, other = as_written(facts, found.written), as_written(facts, found.other)
    if found.is_write:
        text += f"{one} and {other} both change it in place"
    else:
        text += f"{one} changes it in place, and {other} reads it"
    made = facts.creator(found.tensor)
    return stands_out(
        text,
        facts.label("modified_here", found.written.site, f"changes `{first}`"),
        facts.label("modified_here" if found.is_write else "needed_here", found.other.site,
                    f"{'changes' if found.is_write else 'reads'} `{second}`"),
        None if made is None else facts.label("value_made_here", made.site, "made here", made.index),
    )  # fmt: skip

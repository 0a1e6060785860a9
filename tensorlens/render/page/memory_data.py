"""Puts tensors, storages and what happens in them into the page's data."""

from __future__ import annotations

from typing import Any

from tensorlens.analysis.moments.run_moments import Moments
from tensorlens.analysis.moments.storage_lanes import bars, pins, ticks
from tensorlens.analysis.naming.names import shape_text
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.render.page.strings import Strings, columns


def tensor_data(facts: TraceIndex, strings: Strings, moments: Moments, shown: set[int]) -> dict[str, list[Any]]:
    """Returns the tensors, by their numbers in the trace, with the names that the report has for them."""
    rows = (
        (
            number,
            strings.number(facts.name(number)),
            strings.number(shape_text(facts.tensor(number))),
            strings.number(facts.tensor(number).dtype),
            strings.number(facts.tensor(number).device),
            strings.number(facts.tensor(number).type),
            facts.tensor(number).counter,
            facts.tensor(number).base,
            moments.of_event(facts.tensor(number).created_by),
            facts.names.script_name(number) is not None,
        )
        for number in sorted(shown)
    )
    return columns("id name shape dtype device type counter base made named", rows)


def memory_data(facts: TraceIndex, strings: Strings, moments: Moments, shown: set[int]) -> dict[str, Any]:
    """Returns the storages of the `shown` tensors, with their bars, writes and saved tensors."""
    known = [bar for bar in bars(facts, moments) if bar.tensor in shown]
    storages = sorted({bar.storage for bar in known})
    return {
        "storages": columns(
            "id bytes mark",
            (
                (number, facts.trace.storages[number].nbytes, strings.number(facts.names.storage_mark(number)))
                for number in storages
            ),
        ),
        "bars": columns(
            "storage row tensor first last open",
            ((bar.storage, bar.row, bar.tensor, bar.first, bar.last, bar.is_open) for bar in known),
        ),
        "writes": columns(
            "storage moment tensor before after",
            ((each.storage, each.at, each.tensor, each.before, each.after) for each in ticks(facts, moments)),
        ),
        "saves": columns(
            "storage tensor node slot version found saved changed needed problem",
            (
                (
                    pin.storage, pin.tensor, strings.number(pin.node), strings.number(pin.slot), pin.version,
                    pin.found, pin.saved, pin.changed, pin.needed, strings.number(pin.problem),
                )
                for pin in pins(facts, moments)
            ),
        ),
    }  # fmt: skip

"""Names arithmetic of bytes that wraps around, and whose results a model gets as numbers."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.samples.byte_arithmetic import WrappedBytes, wrapped_bytes
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    yield from (_sentence(training, each) for each in wrapped_bytes(training.facts))


def _sentence(training: MeasuredTraining, found: WrappedBytes) -> StandingOut:
    facts, measured = training.facts, found.measured
    dtype = facts.tensor(found.call.outputs[0].tensor).dtype
    ends = "0 to 255" if dtype == "uint8" else "-128 to 127"
    return stands_out(
        f"{as_written(facts, found.call)} computes in {dtype}, which holds {ends}, and the exact results are from "
        f"{measured.least:,} to {measured.most:,}: {measured.wrapped:,} of {measured.elements:,} elements wrap around "
        "before they become floats",
        facts.label("value_made_here", found.call.site, "bytes wrap around here", found.call.index),
        facts.label("observed_here", found.converted.site, "become floats here", found.converted.index),
    )

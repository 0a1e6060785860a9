"""Says which training steps of a run were recorded, and takes the parts of its trace in which nothing is missing."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise

from tensorlens.records.model import Call, Event, Trace
from tensorlens.records.observations import Observations, RecordingSwitch

_OF_RUN = (
    "overwrites",
    "sighted",
    "reached",
    "unregistered",
    "chosen",
    "switches",
    "intervened",
    "written",
    "threads",
    "others",
    "switching",
)
"""The tables of facts that a part of a trace keeps whole: names, facts that others refer to by position, and the
lines that several threads run."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The training steps of a sampled run."""

    recorded: int  # complete steps that were recorded
    ended: int  # complete steps
    is_counted: bool  # the run reached its end; else there may have been more
    choice: str  # "the first and every 100th", "the first and 5 to 8"
    stretches: tuple[Stretch, ...]
    is_recording: bool  # when the run ended


@dataclass(frozen=True, slots=True)
class Stretch:
    """Events in a row of which none is missing: those from index `start` up to `end`, which is exclusive."""

    start: int
    end: int
    first: int  # step
    last: int  # step; the one that the run ended in may not be complete


def sampling_of(trace: Trace) -> Sampling | None:
    """Returns the steps of a sampled run; None for a run that was recorded without a break."""
    switches = trace.inspection.switches
    if not switches or not trace.inspection.chosen or not has_break(trace):
        return None
    final = switches[-1]
    after = trace.events[-1].index + 1 if trace.events else 0
    ends = [*switches, *(() if final.ended else (RecordingSwitch(after + 1, final.step, final.recording, True),))]
    stretches = [
        Stretch(one.index, after + 1 if other.ended else other.index, one.step, max(other.step - 1, one.step))
        for one, other in pairwise(ends)
        if one.recording
    ]
    recorded = sum(other.step - one.step for one, other in pairwise(ends) if one.recording)
    return Sampling(recorded, final.step - 1, final.ended, _choice(trace), tuple(stretches), final.recording)


def has_break(trace: Trace) -> bool:
    """Returns whether some training step was not recorded."""
    return any(not switch.recording for switch in trace.inspection.switches)


def _choice(trace: Trace) -> str:
    chosen = trace.inspection.chosen[0]
    if chosen.every is not None:
        return f"the first and every {_ordinal(chosen.every)}"
    first = "" if chosen.first == 1 else "the first and "
    if chosen.last is None:
        return f"{first}those from {chosen.first} on"
    if chosen.last == chosen.first:
        return f"{first}number {chosen.first}"
    return f"{first}{chosen.first} to {chosen.last}"


def _ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{suffix}"


def sampling_text(trace: Trace) -> str:
    """Says which training steps were recorded, in one line; "" if all were."""
    sampling = sampling_of(trace)
    if sampling is None:
        return ""
    total = f"{sampling.ended:,}" if sampling.is_counted else f"at least {sampling.ended:,}"
    noun = "step" if sampling.ended == 1 else "steps"
    others = sampling.ended - sampling.recorded
    rest = [] if not others else ["the other was counted only" if others == 1 else "the others were counted only"]
    if not sampling.is_recording:
        rest.append("what followed the last step was not recorded")
    recorded = f"recorded {sampling.recorded:,} of {total} training {noun} ({sampling.choice})"
    return "; ".join((recorded, ", and ".join(rest))) if rest else recorded


def part_of(trace: Trace, stretch: Stretch) -> Trace:
    """Returns a stretch of a sampled run as a trace, with the calls that made the tensors that it uses.

    Like a long run that has folded calls, it lacks the events before. Failures elsewhere have no code.
    """
    position, end = trace.position(stretch.start), trace.position(stretch.end)
    inside = trace.events[position:end]
    used = {number for event in inside for number in _tensors_of(event)}
    makers = {trace.tensors[number].created_by for number in used}
    earlier = [event for event in trace.events[:position] if isinstance(event, Call) and event.index in makers]
    tables = {
        each.name: tuple(
            fact for fact in getattr(trace.inspection, each.name) if stretch.start <= fact.index <= stretch.end
        )
        for each in fields(Observations)
        if each.name not in _OF_RUN
    }
    return replace(
        trace,
        events=(*earlier, *inside),
        failures=tuple(each if is_in(stretch, each.index) else replace(each, kind="") for each in trace.failures),
        totals=(),
        inspection=replace(trace.inspection, **tables),
    )


def is_in(stretch: Stretch, index: int) -> bool:
    """Returns whether something that happened before the event with this index happened in a stretch."""
    return stretch.start <= index <= stretch.end


def _tensors_of(event: Event) -> set[int]:
    if isinstance(event, Call):
        return {access.tensor for access in (*event.inputs, *event.outputs)}
    return {access.tensor for access in getattr(event, "roots", ())}

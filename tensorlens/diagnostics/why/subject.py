"""Holds the tensor that a question is about, with what every part of the answer asks: lines, passes, its state."""

from __future__ import annotations

from functools import cached_property

from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.analysis.question.run_so_far import is_main, shown_line
from tensorlens.analysis.sampled_run import has_break
from tensorlens.analysis.states import states_after
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import ParameterRow, measured_training
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.timeline import training_of
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.answer import SourceLine, Statement, Topic
from tensorlens.records.model import Backward, Call, State, Trace
from tensorlens.records.training import OptimizerGroup, ParameterMovement, ParameterStatistics


@once_per_trace
def _final_states(trace: Trace) -> dict[int, State]:
    """Returns the last state of each tensor: as the run ended or, if the tensor did not exist then, as recorded."""
    return {state.tensor: state for state in (*states_after(trace), *trace.end.states)}


class Subject:
    """One tensor of a trace, as the run left it."""

    def __init__(self, facts: TraceIndex, number: int, name: str) -> None:
        self.facts, self.number, self.name = facts, number, name
        self.tensor = facts.tensor(number)
        self.training = training_of(facts)
        self.measured = measured_training(facts)

    @cached_property
    def end(self) -> int:
        """The index of the last event."""
        return self.facts.events[-1].index if self.facts.events else -1

    @cached_property
    def is_whole(self) -> bool:
        """True if nothing is missing in the trace: then what it does not show did not happen in the program."""
        trace = self.facts.trace
        return is_complete(trace) and not self.training.is_hidden and not has_break(trace)

    @cached_property
    def alive(self) -> bool | None:
        """True if the tensor existed when the run ended; None if the trace does not say."""
        states = self.facts.trace.end.states
        return any(state.tensor == self.number for state in states) if states else None

    @cached_property
    def state(self) -> State | None:
        """The last state of the tensor, with its `.grad`."""
        return _final_states(self.facts.trace).get(self.number)

    @cached_property
    def group(self) -> OptimizerGroup | None:
        """The parameter group that holds the tensor: the first that has stepped."""
        holding = [] if self.measured is None else self.measured.groups
        holding = [group for group in holding if self.number in group.parameters]
        return next((group for group in holding if group.steps), holding[0] if holding else None)

    @cached_property
    def statistics(self) -> ParameterStatistics | None:
        return None if self.measured is None else self.measured.statistics.get(self.number)

    @cached_property
    def movement(self) -> ParameterMovement | None:
        return None if self.measured is None else self.measured.movements.get(self.number)

    @cached_property
    def row(self) -> ParameterRow | None:
        """The row of `--training` about it, if it is a parameter with a name."""
        return None if self.measured is None else self.measured.row(self.number)

    # --- passes ---------------------------------------------------------------------------------------------------

    @cached_property
    def passes(self) -> list[Backward]:
        """The backward passes that put gradients into `.grad`, and did not fail."""
        return [each for each in self.facts.backwards if not each.failed and each.op != "autograd.grad"]

    @cached_property
    def filling(self) -> list[Backward]:
        """The backward passes that gave the tensor a gradient."""
        return [
            each
            for each in self.facts.backwards
            if any(change.tensor == self.number and change.after is not None for change in each.gradients)
        ]

    def pass_text(self, backward: Backward) -> str:
        """Returns "line 39, pass 5 of 5": a pass by its line and, if all are known, by its number."""
        line = self.where(backward.site)
        if not self.is_whole or len(self.facts.backwards) == 1:
            return line
        return f"{line}, pass {self.facts.backwards.index(backward) + 1} of {len(self.facts.backwards)}"

    # --- words ----------------------------------------------------------------------------------------------------

    def where(self, site: int | None) -> str:
        """Returns a line as text: "line 5"; "net.py:5" in another file than the script."""
        span = self.facts.span(site)
        if span is None:
            return "a line that is not known"
        if is_main(self.facts.trace, span.file):
            return f"line {span.line}"
        return f"{shown_line(self.facts.trace, span).file}:{span.line}"

    def by(self, event: Call | Backward) -> str:
        """Returns a call as the script writes it, with its line: "`optimizer.step()` (line 41)"."""
        return f"{as_written(self.facts, event)} ({self.where(event.site)})"

    def say(self, topic: Topic, text: str, *sites: int | None) -> Statement:
        """Makes a statement with its lines, each once."""
        spans = [span for site in sites if (span := self.facts.span(site)) is not None]
        lines: dict[SourceLine, None] = dict.fromkeys(shown_line(self.facts.trace, span) for span in spans)
        return Statement(topic, text, tuple(lines))

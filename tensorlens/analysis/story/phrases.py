"""Says in words what one run of a line did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from tensorlens.analysis.naming.names import Names
from tensorlens.analysis.naming.places import Place, place_of
from tensorlens.analysis.naming.storage_numbers import owners_of_gradients
from tensorlens.analysis.story.call_phrases import CallPhrases
from tensorlens.analysis.story.current_names import CurrentNames
from tensorlens.analysis.story.gradient_changes import gradient_kind, gradient_text
from tensorlens.analysis.story.line_events import MANY, LineEvent, count_text
from tensorlens.analysis.story.origins import VisitCalls, listed
from tensorlens.analysis.story.tensors_before import StorageUsers, TensorsBefore
from tensorlens.analysis.trace_index import index_of
from tensorlens.records.model import Backward, Call, Event, Failure, GradMode, Notice, Region, Trace
from tensorlens.records.source import one_line

_IN_BLOCK, _IN_CALL = " in this block", " in this call"
_MODES = {"grad": "gradient recording on", "no_grad": "gradient recording off", "inference": "inference mode"}
REGION_TEXTS = {
    "detect_anomaly": "anomaly detection on",
    "saved_tensors_hooks": "hooks on saved tensors",
    "save_on_cpu": "saved tensors go to the CPU",
    "disable_saved_tensors_hooks": "hooks on saved tensors refused",
    "dual_level": "forward-mode level",
}
"""The special modes that the story shows where they are entered."""


class Phrases:
    """Turns the events of one run of a line into phrases."""

    def __init__(self, trace: Trace, names: Names) -> None:
        self._facts = index_of(trace)
        self._trace = trace
        self._names = names
        self._users = StorageUsers(trace)
        self._current = CurrentNames(trace, names)
        self._owners = owners_of_gradients(trace)
        switches = [event for event in trace.events if isinstance(event, GradMode)]
        self._entered = {self._place(event) for event in switches if event.entering}
        self._left = {self._place(event) for event in switches if not event.entering}
        self._modified = [saved for failure in trace.failures for saved in failure.saved if saved.problem == "version"]

    def line_events(self, events: Sequence[Event]) -> list[LineEvent]:
        """Says what one run of a line did: its calls first, then its other events in order."""
        calls = [event for event in events if isinstance(event, Call)]
        backwards = [event for event in events if isinstance(event, Backward)]
        phrases: list[LineEvent] = []
        if calls:
            before = TensorsBefore(self._trace, self._current, self._users, events[0].index)
            visit = VisitCalls(self._trace, calls, backwards)
            phrases = CallPhrases(self._facts, before, visit, calls).line_events(self._modified)
        for event in events:
            if isinstance(event, Backward):
                phrases += self._backward(event)
            elif isinstance(event, GradMode):
                phrases += self._grad_mode(event)
            elif isinstance(event, Region):
                phrases.append(LineEvent("", REGION_TEXTS[event.name]))
            elif isinstance(event, Notice):
                phrases.append(LineEvent("", f"{event.category}: {one_line(event.message, 60)}", kind="warning"))
        blocks = {phrase.text.removesuffix(_IN_BLOCK) for phrase in phrases if phrase.text.endswith(_IN_BLOCK)}
        return [phrase for phrase in phrases if phrase.text not in {f"{text}{_IN_CALL}" for text in blocks}]

    def lasting_memory(self, events: Sequence[Event]) -> set[int]:
        """Returns the storages that the calls changed, as far as they belong to parameters, gradients, or tensors that
        have a name at the end."""
        written = {write.tensor for event in events if isinstance(event, Call) for write in event.writes}
        if not written:
            return set()
        storages = {self._names.storage_of(tensor) for tensor in written}
        return {storage for storage in storages if storage is not None and storage in self._lasting_storages}

    def _is_lasting(self, tensor: int) -> bool:
        is_parameter = self._trace.tensors[tensor].type == "Parameter"
        return is_parameter or bool(self._names.all_names(tensor)) or tensor in self._owners

    @cached_property
    def _lasting_storages(self) -> set[int | None]:
        return {self._names.storage_of(tensor.id) for tensor in self._trace.tensors if self._is_lasting(tensor.id)}

    def _backward(self, event: Backward) -> list[LineEvent]:
        if not event.gradients:
            if event.failed:
                return []
            asked = listed(self._current.described(tensor, event.index) for tensor in event.inputs)
            if event.op != "autograd.grad" and asked:  # a tensor that is no leaf has a `.grad` then
                return [LineEvent("", f"gradient of {asked} computed")]
            return [LineEvent("", f"gradient of {asked} returned, no .grad changed" if asked else "no .grad changed")]
        names = [self._current.described(gradient.tensor, event.index) for gradient in event.gradients]
        if len(names) > MANY:
            counts = Counter(gradient_kind(gradient) for gradient in event.gradients)
            parts = ", ".join(f".grad of {count_text(n, 'tensor')} {kind}" for kind, n in counts.items())
            return [LineEvent("", parts + (f": {', '.join(names)}" if len(names) <= 2 * MANY else ""))]
        return [LineEvent(f"{n}.grad", gradient_text(g)) for n, g in zip(names, event.gradients, strict=True)]

    def _grad_mode(self, event: GradMode) -> list[LineEvent]:
        """Returns the phrase for a switch of gradient recording. A block has one phrase, where it is entered."""
        text, place = _MODES[event.mode], self._place(event)
        if not event.entering:
            return [] if place in self._entered else [LineEvent("", f"{text} again")]
        text += "" if event.mode == "inference" else f" ({event.cause})"
        if event.decorator:
            return [LineEvent("", f"{text} in each call")]
        if place not in self._left:
            return [LineEvent("", f"{text} from here on")]
        called = self._names.syntax.is_call(self._trace.sites[event.site])  # a call of a decorated function
        return [LineEvent("", text + (_IN_CALL if called else _IN_BLOCK))]

    def _place(self, event: GradMode) -> Place:
        return place_of(self._trace.sites[event.site])


def failure_event(failure: Failure) -> LineEvent:
    """Returns the phrase for an exception, with its message only if it was caught: the report itself shows the
    other's."""
    if failure.caught:
        return LineEvent("", f"{failure.type}, caught: {one_line(failure.message, 80)}", kind="error")
    return LineEvent("", failure.type, kind="error")

"""Chooses the interventions that a finding's labels call for, and other ones that the trace knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tensorlens.analysis.contexts import open_region
from tensorlens.analysis.saved_tensors import saved_tensor_change
from tensorlens.analysis.trace_index import OPS_ENTERING_TORCH, OPS_LEAVING_TORCH, TraceIndex
from tensorlens.diagnostics.shared.wording import op_text
from tensorlens.journal.child_config import Intervention
from tensorlens.records.model import Backward, Call, Failure, GradMode, Region, Span, Trace
from tensorlens.records.report import Diagnostic, Label
from tensorlens.records.source import shown_path
from tensorlens.trials.kinds import KEEP, RECORD, RETAIN, ROLES, SKIP, Kind

_MOST = 3  # other causes that are tried in place of a wrong one
_DETACHING = ("Tensor.detach", "torch.detach", "Tensor.detach_", "torch.detach_", "Tensor.data.__get__")


@dataclass(frozen=True, slots=True)
class Trial:
    """Interventions of one kind, at the calls of some places. `role` is the role of the label that names them."""

    kind: Kind
    role: str
    spans: tuple[Span, ...]

    def interventions(self) -> tuple[Intervention, ...]:
        """Returns them as the child process gets them."""
        return tuple(
            Intervention(self.kind, span.file, span.line, span.column, span.end_line, span.end_column)
            for span in self.spans
        )

    def only(self, made: frozenset[int]) -> Trial:
        """Returns the part of it that a further run made; all of it if that run made none."""
        spans = tuple(span for number, span in enumerate(self.spans) if number in made)
        return replace(self, spans=spans or self.spans)

    def words(self, trace: Trace) -> str:
        """Says what the further run does: "with a copy of what line 29 saved"."""
        lines = places(trace, self.spans)
        many = len(self.spans) > 1 and " and " in lines
        if self.kind == KEEP:
            return f"with {'copies' if many else 'a copy'} of what {lines} saved"
        if self.kind == RETAIN:
            return f"with the graph kept by the backward of {lines}"
        if self.kind == RECORD:
            return f"with gradients recorded at {lines}"
        return f"without the write at {lines}"


def places(trace: Trace, spans: Iterable[Span]) -> str:
    """Returns "line 29", "lines 27 and 29" or "rl_updates.py:9"."""
    script = shown_path(trace.script.path, trace.script.folder)
    own, others = [], []
    for span in dict.fromkeys(spans):
        file = shown_path(span.file, trace.script.folder)
        if file in (script, "<stdin>"):
            own.append(span.line)
        else:
            others.append(f"{file}:{span.line}")
    numbers = [str(line) for line in sorted(set(own))]
    if len(numbers) > 1:
        own_text = [f"lines {', '.join(numbers[:-1])} and {numbers[-1]}"]
    else:
        own_text = [f"line {number}" for number in numbers]
    texts = [*own_text, *dict.fromkeys(others)]
    return " and ".join(texts)


def trial_of(facts: TraceIndex, diagnostic: Diagnostic) -> Trial | None:
    """Returns the trial of the cause that a finding names; None if its labels name none that a run can change."""
    for kind, roles in ROLES.items():
        labels = [label for label in diagnostic.labels if label.role in roles]
        if labels:
            around = _checkpoints(facts, labels) if kind == KEEP else ()
            return Trial(kind, labels[0].role, tuple(dict.fromkeys((*_spans(facts, labels), *around))))
    unrecorded = [label for label in diagnostic.labels if label.site in _unrecorded(facts)]
    return Trial(RECORD, unrecorded[0].role, _spans(facts, unrecorded)) if unrecorded else None


def _unrecorded(facts: TraceIndex) -> set[int | None]:
    """Returns the sites of contexts that record no gradients, and of checkpoints."""
    return {getattr(event, "site", None) for event in facts.events if _cut_role(event) and not isinstance(event, Call)}


def _checkpoints(facts: TraceIndex, labels: Iterable[Label]) -> Iterator[Span]:
    """Yields the places of the checkpoints whose functions made the labelled calls: a checkpoint saves its inputs."""
    for label in labels:
        region = None if label.event is None else open_region(facts, label.event, "checkpoint")
        span = None if region is None else facts.span(region.site)
        if span is not None:
            yield span


def write_of(facts: TraceIndex, diagnostic: Diagnostic) -> Trial | None:
    """Returns the trial that skips the write that a finding names."""
    labels = [label for label in diagnostic.labels if label.role == "modified_here"]
    return Trial(SKIP, "modified_here", _spans(facts, labels)) if labels else None


def why_impossible(facts: TraceIndex, trial: Trial) -> str:
    """Says why no run can record a gradient at a cut: its values leave torch there; "" if one can."""
    if trial.kind != RECORD:
        return ""
    lines = {(span.file, span.line) for span in trial.spans}
    calls = [c for c in facts.calls if (span := facts.span(c.site)) is not None and (span.file, span.line) in lines]
    leaving = [call.op for call in calls if call.op in OPS_LEAVING_TORCH]
    if leaving:
        return f"{op_text(leaving[0])} gives values outside torch, where no run can record a gradient"
    entering = [call.op for call in calls if call.op in OPS_ENTERING_TORCH and not call.inputs]
    return f"{op_text(entering[0])} gets values that are no tensors: no run can record a gradient" if entering else ""


def saves_of(facts: TraceIndex, failure: Failure) -> tuple[Span, ...]:
    """Returns the places of all calls whose saved tensors fail the version check of a failed pass."""
    change = saved_tensor_change(facts, failure)
    calls = [] if change is None else [save.call for save in (change.save, *change.others)]
    found = (facts.span(call.site) for call in calls if call is not None)
    return tuple(dict.fromkeys(span for span in found if span is not None))


def passes_before(facts: TraceIndex, failure: Failure) -> tuple[Span, ...]:
    """Returns the places of the backward passes before a failure that released their graph, the latest first."""
    earlier = (b for b in reversed(facts.backwards) if b.index < failure.index and not b.retain_graph and not b.failed)
    found = (facts.span(backward.site) for backward in earlier)
    return tuple(dict.fromkeys(span for span in found if span is not None))


def alternatives(facts: TraceIndex, failure: Failure, tried: Trial) -> Iterator[Trial]:
    """Yields trials of other causes of the same failure that the trace knows, the likeliest first: at most three."""
    if tried.kind in (KEEP, SKIP):
        change = saved_tensor_change(facts, failure)
        writes = [] if change is None else [facts.span(each.event.site) for each in change.changes]
        found = [*(Trial(KEEP, "saved_here", (span,)) for span in saves_of(facts, failure))]
        found += [Trial(SKIP, "modified_here", (span,)) for span in dict.fromkeys(writes) if span is not None]
    elif tried.kind == RETAIN:
        found = [Trial(RETAIN, "freed_here", (span,)) for span in passes_before(facts, failure)]
    else:
        found = list(_cuts_before(facts, failure))
    yield from [each for each in found if not set(each.spans) <= set(tried.spans)][:_MOST]


def _cuts_before(facts: TraceIndex, failure: Failure) -> Iterator[Trial]:
    seen: set[Span] = set()
    for event in reversed(facts.events):
        role = _cut_role(event)
        span = facts.span(getattr(event, "site", None)) if role and event.index < failure.index else None
        if span is not None and span not in seen:
            seen.add(span)
            yield Trial(RECORD, role, (span,))


def _cut_role(event: object) -> str:
    """Returns the role of an event that ends recording for a value or a region; "" for any other."""
    if isinstance(event, GradMode):
        return "grad_mode_off_here" if event.entering and event.mode != "grad" else ""
    if isinstance(event, Region):
        return "graph_cut_here" if event.entering and event.name == "checkpoint" else ""
    return "graph_cut_here" if isinstance(event, Call) and event.op in _DETACHING else ""


def failing_line(facts: TraceIndex, failure: Failure) -> str:
    """Returns the line of a failure."""
    span = facts.span(failure.site)
    return "the failing line" if span is None else places(facts.trace, (span,))


def silent_pass(facts: TraceIndex) -> Backward | None:
    """Returns the pass whose gradients differ in the run with copies."""
    reference = facts.trace.reference
    differing = reference.differences[0].backward if reference is not None and reference.differences else None
    event = facts.event(differing)
    return event if isinstance(event, Backward) else None


def _spans(facts: TraceIndex, labels: Iterable[Label]) -> tuple[Span, ...]:
    """Returns the places of the calls that labels mark. A label may mark only a part of a statement."""
    found = (label.span if label.site is None else facts.span(label.site) for label in labels)
    return tuple(dict.fromkeys(span for span in found if span is not None))

"""Finds the cause of `ddp-unused-parameter`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.parameters_without_gradient import PathEnd, ends_in, unused_path_ends
from tensorlens.analysis.training.timeline import training_of
from tensorlens.diagnostics.shared.cut_facts import written
from tensorlens.diagnostics.shared.graph_cuts import cut_cause
from tensorlens.diagnostics.shared.optimizers import born, listed
from tensorlens.diagnostics.shared.rejected import rejected_calls, report_rejected
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.distributed import Wrapped
from tensorlens.records.error_messages import FindingText, entry
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import Diagnostic, Fix, Label

CODE = "ddp-unused-parameter"
_INDICES = re.compile(r"Parameter indices which did not receive grad for rank \d+: ([\d ]+)")
_WHY = "each pass ends when every parameter that required grad at wrapping has its gradient"
_HELP = (
    "if it is never used, leave it out of the module, or freeze it before wrapping: it is then not trained",
    "if only some passes use it, pass `find_unused_parameters=True` to the wrapper",
)
_TEXT = FindingText(
    "{leaf} got no gradient in the pass before, and `DistributedDataParallel` still waits for it",
    _WHY,
    _HELP,
    help_at=("leaf_made_here", ""),
)


@dataclass(frozen=True)
class _Missing:
    """The parameters that the wrapper waits for, and the pass that gave them no gradient."""

    rejected: RejectedCall
    names: tuple[str, ...]
    tensors: tuple[int, ...]
    backward: Backward

    @property
    def facts(self) -> TraceIndex:
        return self.rejected.facts


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports the parameters that got no gradient, and where their path to the loss ends."""
    known = entry(CODE)
    for rejected in rejected_calls(facts, CODE):
        missing = _missing(rejected)
        if missing is not None:
            yield _report(missing)
        elif known is not None:
            yield report_rejected(rejected, known, _TEXT)


def _missing(rejected: RejectedCall) -> _Missing | None:
    """Returns the parameters that the message counts, if only one wrapper can be meant."""
    facts, said = rejected.facts, _INDICES.search(rejected.message)
    before = [each for each in facts.backwards if each.index < rejected.index and not each.failed]
    if said is None or not before:
        return None
    indices, found = [int(text) for text in said[1].split()], []
    for wrapped in facts.trace.inspection.wrapped:
        trained = [number for number, kind in enumerate(wrapped.kinds) if kind == "trained"]
        backward = _last_pass(before, wrapped)
        if backward is None or len(trained) <= max(indices):
            continue
        positions = [trained[index] for index in indices]
        tensors = tuple(wrapped.tensors[position] for position in positions)
        if not set(tensors) & {gradient.tensor for gradient in backward.gradients}:
            found.append(_Missing(rejected, tuple(wrapped.names[each] for each in positions), tensors, backward))
    return found[0] if len(found) == 1 else None


def _last_pass(passes: list[Backward], wrapped: Wrapped) -> Backward | None:
    tensors = set(wrapped.tensors)
    reached = (each for each in reversed(passes) if any(gradient.tensor in tensors for gradient in each.gradients))
    return next(reached, None)


def _report(missing: _Missing) -> Diagnostic:
    facts, rejected = missing.facts, missing.rejected
    names = listed([f"`{name}`" for name in missing.names])
    end, unused = _path_end(missing), _is_unused(missing)
    cause = _cause(facts, end) if end is not None else "no operation used it" if unused else ""
    if unused and len(missing.names) > 1:
        cause = "no operation used them"
    earlier = _earlier_use(missing) if unused else None
    used = "uses it in other passes" if earlier is not None else ""
    labels = [
        facts.label("called_here", rejected.site, "still waits for the gradient"),
        None if end is None else facts.label("graph_cut_here", end.cut.call.site, "its path to the loss ends here"),
        facts.label("value_made_here", earlier, used) if earlier is not None else None,
        facts.label("needed_here", missing.backward.site, "this pass gave it no gradient"),
        *_made(missing),
    ]
    return finding(
        CODE,
        rejected.severity,
        f"{names} got no gradient in the pass before{f': {cause}' if cause else ''}",
        _WHY,
        labels,
        fixes=tuple(_fixes(missing, end, labels[1])),
        evidence={"parameters": list(missing.names), "message": rejected.message},
    )


def _path_end(missing: _Missing) -> PathEnd | None:
    training, numbers = training_of(missing.facts), set(missing.tensors)
    if training.is_hidden or not _is_whole(missing):
        return None
    if ends := ends_in(training, missing.backward, numbers):
        return ends[0]
    return next((each for each in unused_path_ends(training, numbers) if each.backward == missing.backward), None)


def _cause(facts: TraceIndex, end: PathEnd) -> str:
    if end.kind == "cut":
        return cut_cause(facts, end.cut)
    if end.kind == "unused":
        return f"the loss does not use what {written(facts, end.cut.call)} computed"
    return ""


def _start(missing: _Missing) -> int:
    """Returns the index of the pass before the one that gave no gradient; 0 if that was the first."""
    passes = [each.index for each in missing.facts.backwards if each.index < missing.backward.index]
    return max(passes, default=0)


def _is_whole(missing: _Missing) -> bool:
    trace = missing.facts.trace
    first, last = trace.position(_start(missing)), trace.position(missing.backward.index)
    return trace.events[last].index - trace.events[first].index == last - first


def _uses(missing: _Missing, start: int, end: int) -> Iterator[Call]:
    tensors = set(missing.tensors)
    for call in missing.facts.calls:
        if start < call.index < end and call.nodes[1] > call.nodes[0] and not call.within:
            if any(access.tensor in tensors for access in call.inputs):
                yield call


def _is_unused(missing: _Missing) -> bool:
    """Returns whether no operation of the pass used one of the parameters."""
    return _is_whole(missing) and not any(_uses(missing, _start(missing), missing.backward.index))


def _earlier_use(missing: _Missing) -> int | None:
    return next((call.site for call in _uses(missing, -1, _start(missing))), None)


def _made(missing: _Missing) -> Iterator[Label | None]:
    """Labels where the parameters were made: one line for each layer."""
    sites = dict.fromkeys(born(missing.facts, tensor) for tensor in missing.tensors)
    for site in list(sites)[:2]:
        yield missing.facts.label("leaf_made_here", site, "made here; no gradient reached it")


def _fixes(missing: _Missing, end: PathEnd | None, cut: Label | None) -> Iterator[Fix]:
    if end is not None and end.kind in ("cut", "unused") and cut is not None:
        yield fix("if it is to be trained, let the loss use what this line computes", place=cut.span)
    made = next((label.span for label in _made(missing) if label is not None), None)
    yield fix(_HELP[0], place=made)
    yield fix(_HELP[1])

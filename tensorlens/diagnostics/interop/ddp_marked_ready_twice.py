"""Finds the cause of `ddp-marked-ready-twice`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.ranks.averaging import recomputed_checkpoint
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import rejected_calls
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.distributed import Wrapped
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import Diagnostic, Label

CODE = "ddp-marked-ready-twice"
_INDEX = re.compile(r"Parameter at index (\d+)(?: with name (\S+))? has been marked as ready twice")
_WHY = "each parameter is to be ready once in a pass: then `DistributedDataParallel` exchanges its gradient"


@dataclass(frozen=True)
class _Marked:
    """The parameter that was ready twice, and the pass that failed."""

    rejected: RejectedCall
    wrapped: Wrapped
    name: str
    tensor: int
    backward: Backward

    @property
    def facts(self) -> TraceIndex:
        return self.rejected.facts


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports the two passes, or the use outside of `forward`, that made a parameter ready twice."""
    for rejected in rejected_calls(facts, CODE):
        marked = _marked(rejected)
        if marked is not None:
            found = _by_checkpoints(marked) or _outside(marked)
            yield from () if found is None else (found,)


def _marked(rejected: RejectedCall) -> _Marked | None:
    facts, said = rejected.facts, _INDEX.search(rejected.message)
    failed = [each for each in facts.backwards if each.failed and each.index >= rejected.index]
    if said is None or not failed:
        return None
    found = []
    for wrapped in facts.trace.inspection.wrapped:
        trained = [number for number, kind in enumerate(wrapped.kinds) if kind == "trained"]
        if int(said[1]) < len(trained):
            position = trained[int(said[1])]
            if said[2] in (None, wrapped.names[position]):
                outermost = min(failed, key=lambda each: each.started)
                tensor = wrapped.tensors[position]
                found.append(_Marked(rejected, wrapped, wrapped.names[position], tensor, outermost))
    return found[0] if len(found) == 1 else None


def _by_checkpoints(marked: _Marked) -> Diagnostic | None:
    """Explains passes of reentrant checkpoints, of which each made the parameter ready."""
    facts, outer = marked.facts, marked.backward
    passes = [
        each
        for each in facts.backwards
        if outer.started <= each.index < outer.index and each.started > outer.started
        if any(gradient.tensor == marked.tensor for gradient in each.gradients)
    ]
    sites = [site for each in passes if (site := recomputed_checkpoint(facts.trace, each)) is not None]
    if len(sites) == len(passes) == 1:
        return _hidden(marked, sites[0])
    if len(sites) < 2 or len(sites) != len(passes):
        return None
    first, second = sites[0], sites[1]
    texts = ("its backward pass makes it ready", "its backward pass makes it ready again")
    labels = [
        facts.label("called_here", site, text) for site, text in zip((second, first), reversed(texts), strict=True)
    ]
    if first == second:
        labels = [facts.label("called_here", first, "each run has a backward pass that makes it ready")]
    return _finding(
        marked,
        "two checkpoints ran the layer, and each runs a backward pass of its own",
        labels,
        "pass `use_reentrant=False` to these checkpoints: they then run in the one backward pass",
    )


def _hidden(marked: _Marked, site: int) -> Diagnostic | None:
    """Explains a parameter that only a checkpoint uses: the wrapper counted it as unused, and ready, when the forward
    pass ended."""
    if "find_unused_parameters" not in marked.wrapped.options or _uses(marked):
        return None
    return _finding(
        marked,
        "the search for unused parameters does not see into a checkpoint",
        [marked.facts.label("called_here", site, "its backward pass makes it ready again")],
        "pass `use_reentrant=False` to this checkpoint: the search then sees what it uses",
    )


def _uses(marked: _Marked) -> list[Call]:
    """Returns the calls since the last pass that used the parameter and made a node."""
    before = max((each.index for each in marked.facts.backwards if each.index < marked.backward.started), default=-1)
    return [
        each
        for each in marked.facts.calls
        if before < each.index < marked.backward.started and each.nodes[1] > each.nodes[0] and not each.within
        if any(access.tensor == marked.tensor for access in each.inputs)
    ]


def _outside(marked: _Marked) -> Diagnostic | None:
    """Explains a parameter that only lines after the forward pass of the wrapper used: the wrapper counted it as
    unused, and ready, when that pass ended."""
    facts, outer = marked.facts, marked.backward
    if "find_unused_parameters" not in marked.wrapped.options:
        return None
    calls = [each for each in facts.calls if each.index < outer.started]
    end = next((each.index for each in reversed(calls) if each.op == "_DDPSink.apply"), None)
    before = max((each.index for each in facts.backwards if each.index < outer.started), default=-1)
    if end is None or end < before:
        return None
    uses = _uses(marked)
    if not uses or uses[0].index < end:
        return None
    return _finding(
        marked,
        "a line outside of the wrapper's forward pass uses it",
        [
            facts.label("called_here", uses[0].site, "uses it after the forward pass"),
            facts.label("value_made_here", _forward(calls, end), "counts it as unused, and as ready"),
        ],
        "do this inside the `forward` of the module that is wrapped",
    )


def _forward(calls: list[Call], end: int) -> int | None:
    return next((each.site for each in calls if each.index == end), None)


def _finding(marked: _Marked, cause: str, labels: list[Label | None], advice: str) -> Diagnostic:
    facts, rejected = marked.facts, marked.rejected
    place = next((label.span for label in labels if label is not None), None)
    return finding(
        CODE,
        rejected.severity,
        f"`{marked.name}` was ready twice in one backward pass: {cause}",
        _WHY,
        [*labels, facts.label("needed_here", marked.backward.site, "backward runs here")],
        fixes=(fix(advice, place=place),),
        evidence={"parameter": marked.name, "message": rejected.message},
    )

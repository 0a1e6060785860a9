"""Finds the cause of `detached-loss-made-to-require-grad`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import Cut, find_cut
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import training_of
from tensorlens.diagnostics.shared.graph_cuts import cut_fixes, cut_labels, cut_reason
from tensorlens.diagnostics.shared.wording import as_written, finding, named
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    reported: set[int] = set()
    for backward in facts.backwards:
        for root in backward.roots:
            flagged = (
                None if backward.failed or backward.site in reported else _flagged(facts, root.tensor, backward.index)
            )
            cut = None if flagged is None else _cut(facts, root.tensor, flagged)
            if flagged is not None and cut is not None and cut.source is not None:
                reported.add(backward.site)
                yield _report(facts, backward, root.tensor, (flagged, cut))


def _cut(facts: TraceIndex, root: int, flagged: Call) -> Cut | None:
    """Finds the call that cut the history, before the tensor was made to require grad."""
    return find_cut(facts, root, flagged.index + (flagged is facts.creator(root)))


def _flagged(facts: TraceIndex, root: int, before: int) -> Call | None:
    """Finds the call that made the root a leaf that requires grad."""
    state, made = facts.state(root, before - 1), facts.creator(root)
    if state is None or not (state.requires_grad and state.is_leaf) or made is None:
        return None
    switched = (c for c in reversed(facts.calls) if c.index < before and any(s.tensor == root for s in c.states))
    return next((c for c in switched if c is made or not facts.requires_grad(root, c.index - 1)), None)


def _report(facts: TraceIndex, backward: Backward, root: int, flagged_and_cut: tuple[Call, Cut]) -> Diagnostic:
    flagged, cut = flagged_and_cut
    name = named(facts, root, backward.index)
    made = facts.span(flagged.site)  # `torch.tensor(value, requires_grad=True)` has one label
    harmless = cut.left_torch is not None and not training_of(facts).steps
    return finding(
        "detached-loss-made-to-require-grad",
        "note" if harmless else "warning",
        f"backward from {name} reaches no parameter: its history was cut before {as_written(facts, flagged)}",
        f"{cut_reason(facts, cut)}; requiring grad afterwards does not bring its history back",
        [
            facts.label("replaced_here", flagged.site, "what it was computed from gets no gradient"),
            *(each for each in cut_labels(facts, cut) if each is None or each.span != made),
            facts.label("needed_here", backward.site, f"gives a gradient to {name} alone"),
        ],
        fixes=tuple(cut_fixes(facts, cut)),
        evidence={"loss": facts.name(root, backward.index)},
    )

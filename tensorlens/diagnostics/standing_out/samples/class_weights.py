"""Names samplers that are given one weight for each class, where one for each sample is needed."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.samples.sampler_weights import class_draws
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_COPIES = frozenset("as_tensor tensor to double float detach clone cpu".split())


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in class_draws(facts):
        at = each.drawn if each.made is None or not facts.trace.sites[each.drawn.site].through else each.made
        origin = _origin(facts, each.made)
        yield stands_out(
            f"{as_written(facts, at)} has {each.weights:,} weights, and the numbers that are drawn by them name "
            f"samples: only the first {each.weights:,} of {each.samples:,} samples are ever drawn. A weight for each "
            f"sample, as `weights[labels]`, draws all",
            facts.label("observed_here", at.site, "the weights", at.index),
            *([] if origin is None else [facts.label("value_made_here", origin.site, "made here", origin.index)]),
            facts.label("observed_here", each.drawn.site, "drawn here", each.drawn.index),
            facts.label("value_made_here", each.taken.site, "samples are taken here", each.taken.index),
        )


def _origin(facts: TraceIndex, made: Call | None) -> Call | None:
    """Returns the call of the program that computed the weights, before a sampler took them over."""
    first, most = made, 4
    while made is not None and (facts.trace.sites[made.site].through or op_name(made) in _COPIES) and most:
        made, most = facts.creator(made.inputs[0].tensor) if made.inputs else None, most - 1
    is_other = made is not None and first is not None and not facts.same_line(made.site, first.site)
    return made if most and is_other else None

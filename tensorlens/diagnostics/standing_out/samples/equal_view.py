"""Names losses that compare two results of a network for one view of the samples, which are equal."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.samples.equal_views import EqualViews, copied, equal_views, second_name
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    yield from (_sentence(training, each) for each in equal_views(training.facts))


def _sentence(training: MeasuredTraining, found: EqualViews) -> StandingOut:
    facts, named_twice = training.facts, second_name(training.facts, found)
    view, made = named(facts, found.view, found.first.index), facts.creator(found.view)
    span = None if named_twice is None else facts.span_of(named_twice[1], named_twice[0])
    copy = copied(facts, found)
    chain = [site for call in (found.second, found.first) for site in facts.call_chain(call.site)]
    outer = next((site for site in chain if facts.scope(site) == facts.scope(found.compared.site)), found.second.site)
    return stands_out(
        f"{as_written(facts, found.compared)} compares two results of a network for one input, {view}: no random "
        "number is drawn for either of them alone, so the two are equal",
        facts.label("value_made_here", None if copy is None else copy.site, "a copy is the other view"),
        None if span is None else Label("observed_here", span, "one view gets two names here", None, None),
        facts.label("value_made_here", None if made is None else made.site, "the only view is made here"),
        facts.label("observed_here", outer, "the network gets it again", found.second.index),
        facts.label("needed_here", found.compared.site, "compared here", found.compared.index),
    )

"""Names lines that set one seed again and again, so that training steps draw the same random numbers."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.modes.repeated_generators import repeated_generators
from tensorlens.analysis.training.modes.seeded_twins import seeded_twins
from tensorlens.analysis.training.repeated_seeds import repeated_seeds
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.source import text_of


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in repeated_seeds(facts):
        draw = as_written(facts, each.draw)
        what = "state" if each.seed.seed is None else "seed"
        call = "`torch.set_rng_state()`" if what == "state" else f"`torch.manual_seed({each.seed.seed})`"
        yield stands_out(
            f"{call} runs {each.times:,} times between steps, with the same {what}: the random numbers begin anew, and "
            f"the next loss uses some of them, as those of {draw}",
            facts.label("called_here", each.seed.site, f"the same {what} each time"),
            facts.label("value_made_here", each.draw.site, "draws after it", each.draw.index),
        )
    for drawn in repeated_generators(facts):
        made = text_of(facts.trace.sources[drawn.made.file], drawn.made)
        what = f"draws the same random numbers in each of {drawn.times:,} backward passes that use them"
        if drawn.seeds > 1:
            what = f"draws for {drawn.times:,} backward passes with no more than {drawn.seeds} seeds"
        yield stands_out(
            f"{as_written(facts, drawn.draw)} {what}: `{made}` begins anew each time",
            Label("called_here", drawn.made, "the same seed each time"),
            facts.label("value_made_here", drawn.draw.site, "draws after it", drawn.draw.index),
        )
    for twin in seeded_twins(facts):
        call, seed = (text_of(facts.trace.sources[span.file], span) for span in (twin.call, twin.seeding))
        yield stands_out(
            f"`{call}` runs again with the same arguments, and gives the same values: `{seed}` sets the same seed in "
            "both calls, so that two inputs of a loss are equal",
            Label("called_here", twin.call, "called twice with the same arguments"),
            Label("value_made_here", twin.seeding, "the same seed"),
        )

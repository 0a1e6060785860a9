"""Names loads of a dict that has no name of a module, or has some with another prefix, and functional calls, too."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, lines = training.facts, set[int | None]()
    lines |= {each.site for each in facts.trace.inspection.loaded if each.loaded and not each.renamed}
    for each in facts.trace.inspection.loaded:
        if (
            each.number == training.measured.number
            and each.names
            and each.given
            and not each.loaded
            and each.site not in lines
        ):
            lines.add(each.site)
            given = "the only name" if each.given == 1 else f"none of the {each.given} names"
            verb = "is none" if each.given == 1 else "is one"
            call = f"`{'functional_call' if each.is_call else 'load_state_dict'}()` of `{each.module}`"
            does = "uses nothing of its dict" if each.is_call else "loads nothing"
            yield stands_out(
                f"{call} {does}: {given} in the dict {verb} of the module",
                facts.label("called_here", each.site, does),
            )
        elif each.number == training.measured.number and each.loaded and each.renamed and each.site not in lines:
            lines.add(each.site)
            own, other = each.example
            yield stands_out(
                f"`load_state_dict()` of `{each.module}` loads {each.loaded} of {each.names} tensors: the dict has "
                f"{each.renamed} of the others by names with another prefix, as `{other}` for `{own}`",
                facts.label("called_here", each.site, f"loads {each.loaded} of {each.names} tensors"),
            )

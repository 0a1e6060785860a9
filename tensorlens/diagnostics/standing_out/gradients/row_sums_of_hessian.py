"""Names second derivatives of all columns of a gradient at once, which hold mixed derivatives as well."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot

from tensorlens.analysis.caller_lines import caller_lines
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.gradients.hessian_rows import row_sums
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import Label, StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them where a second run has measured that the mixed derivatives are not zero."""
    facts = training.facts
    for each, measured in row_sums(facts):
        second, site = each.second, facts.trace.sites[each.second.site]
        called = caller_lines(facts.trace).line(second) if not site.targets else None
        gradient, used = named(facts, each.gradient, second.index), as_written(facts, each.used)
        does = f"{used} adds up all of them" if op_name(each.used) == "sum" else f"{used} takes such sums"
        yield stands_out(
            f"{as_written(facts, second)} differentiates the sum of the {len(measured.own)} columns of {gradient}, so "
            "it returns sums of rows of the Hessian: in a measured pass, the second derivatives by one column have "
            f"norm {hypot(*measured.own):.2g}, and the mixed ones that are added to them {hypot(*measured.mixed):.2g}; "
            f"{does}. To keep them apart, differentiate each column of {gradient} alone",
            facts.label("value_made_here", second.site, "added up here", second.index),
            None if called is None else Label("called_here", called, "called here"),
            facts.label("observed_here", each.used.site, "used here", each.used.index),
            facts.label("needed_here", each.first.site, "the gradient", each.first.index),
        )

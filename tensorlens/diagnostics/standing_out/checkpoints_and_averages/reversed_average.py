"""Names lines that move trained parameters towards others which nothing changes, as a moving average the wrong way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.training.averaged_parameters import source_of_average
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_MIN_WRITES = 3
_ALIASING = frozenset("detach get clone copy".split())


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these lines. The others are parameters too, with the same shapes, and have their first values all along."""
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    fixed = {row.tensor: row for row in training.rows if _is_fixed(training, row)}
    lines: dict[int, list[tuple[ParameterRow, ParameterRow, list[Call]]]] = defaultdict(list)
    for row in training.rows if fixed else ():
        if not row.is_stepped or row.tensor in fixed:
            continue
        by_site: dict[int, list[tuple[Call, int]]] = defaultdict(list)
        for call in training.writes(row.tensor):
            source = source_of_average(training, call, row.tensor, fixed)
            if source is not None:
                by_site[call.site].append((call, source))
        for site, writes in by_site.items():
            sources = {source for _, source in writes}
            if len(writes) >= _MIN_WRITES and len(sources) == 1:
                lines[site].append((row, fixed[sources.pop()], [call for call, _ in writes]))
    for found in lines.values():
        if not any(_is_used(training, source, writes[0]) for _, source, writes in found):
            continue  # values that the parameters are held near to, as the first ones
        rows, sources_of = [row for row, *_ in found], [source for _, source, _ in found]
        writes_of = found[0][2]
        yield stands_out(
            f"{as_written(facts, writes_of[0])} moves {listed(rows)} towards {listed(sources_of)} in "
            f"{len(writes_of):,} of its runs, and nothing changes {'them' if len(sources_of) > 1 else 'it'}",
            facts.label("modified_here", writes_of[0].site, "written here", writes_of[0].index),
        )


def _is_used(training: MeasuredTraining, row: ParameterRow, first: Call) -> bool:
    """Returns whether a call of another line computes with a parameter from a first write on."""
    facts, storages = training.facts, training.facts.storages_of(row.tensor)
    calls = (call for call in facts.calls_between(first.index) if not facts.same_line(call.site, first.site))
    return any(
        op_name(call) not in _ALIASING and facts.storage_of(access.tensor, call.index) in storages
        for call in calls
        for access in call.inputs
    )


def _is_fixed(training: MeasuredTraining, row: ParameterRow) -> bool:
    """Returns whether a parameter keeps its values from the first step on."""
    first = training.training.steps[0].index if training.training.steps else None
    is_parameter = training.facts.tensor(row.tensor).type.endswith("Parameter")
    return is_parameter and first is not None and not row.is_stepped and not training.writes(row.tensor, since=first)

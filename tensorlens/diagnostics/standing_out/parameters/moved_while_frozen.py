"""Names frozen parameters that a step still moves."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.frozen import frozen_at, is_frozen_for_another
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.timeline import GRAD_SET
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these parameters: a recorded call of a step writes to them after the call that froze them.

    Those of which all gradients are set by hand, as by an evolution strategy, are meant to move.
    """
    facts = training.facts
    groups: dict[tuple[int, int | None], list[tuple[ParameterRow, Call]]] = {}
    for row in training.rows:
        frozen = None if row.requires_grad or not row.is_stepped else frozen_at(facts, row.tensor)
        if frozen is None or row.group is None:
            continue
        moments = training.training.moments.get(row.tensor, ())
        if not row.passes and any(
            m.index > frozen.index and isinstance(m.event, Call) and m.event.op == GRAD_SET for m in moments
        ):
            continue
        steps = [s for s in training.training.steps if s.index > frozen.index and row.tensor in s.parameters]
        if steps and all(is_frozen_for_another(training.training, step, row.tensor) for step in steps):
            continue
        calls = [m.event for m in moments if m.index > frozen.index and isinstance(m.event, Call)]
        if written := [call for call in calls if call.within]:
            groups.setdefault((frozen.site, row.group.site), []).append((row, written[0]))
    for (site, made), found in groups.items():
        rows = [row for row, _ in found]
        assert rows[0].group is not None
        verb = "is frozen, and" if len(rows) == 1 else "are frozen, and"
        yield stands_out(
            f"{listed(rows)} {verb} steps of `{rows[0].group.name}` still change {'it' if len(rows) == 1 else 'them'}",
            facts.label("flag_changed_here", site, "frozen here"),
            facts.label("needed_here", found[0][1].site, "the first such step"),
            facts.label("optimizer_made_here", made, "the optimizer is made here"),
        )

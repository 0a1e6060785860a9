"""Names lines that give a tensor to a shuffle that exchanges items: the items of a tensor are views, not copies."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds `random.shuffle(x)` and NumPy's, by the items that they write to the tensor."""
    facts, seen = training.facts, set[int]()
    for call in facts.calls if training.measured.steps else ():
        if op_name(call) != "setitem" or call.site in seen:
            continue
        seen.add(call.site)
        node = facts.node_at(call.site)
        if not isinstance(node, ast.Call) or last_name(node.func) != "shuffle" or not call.writes:
            continue
        tensor = call.writes[0].tensor
        if len(call.inputs) < 2 or not facts.tensor(tensor).shape:
            continue
        yield stands_out(
            f"{as_written(facts, call)} exchanges the items of {named(facts, tensor, call.index)}, which are views of "
            "its memory: the first write changes what the second one reads, so some items are there several times "
            "and others are lost",
            facts.label("modified_here", call.site, "items overwrite each other", call.index),
        )

"""Finds parameters of a parametrization that a line removes, while the optimizer goes on with them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.records.model import Call
from tensorlens.records.observations import Step

_REMOVING = frozenset(("remove_parametrizations", "remove_weight_norm", "remove_spectral_norm"))
_MIN_STEPS = 2


@dataclass(frozen=True, slots=True)
class RemovedParametrization:
    """Parameters that had gradients at steps, and have none since a line has removed their parametrization."""

    removal: Call
    rows: tuple[ParameterRow, ...]
    step: Step  # the first one after the removal


def removed_parametrizations(training: MeasuredTraining) -> Iterator[RemovedParametrization]:
    """Yields these parameters, together if one line has removed them.

    At least two later steps hold them and find a gradient of another parameter.
    """
    facts, seen = training.facts, set[int]()
    groups: dict[int, list[tuple[Call, ParameterRow, Step]]] = defaultdict(list)
    sites = {site.id for site in facts.trace.sites if _removes(training, site.id)}
    for call in facts.calls if sites else ():
        if call.site not in sites or call.within:
            continue
        for access in call.inputs:
            row = training.row(access.tensor)
            if row is None or not row.is_stepped or access.tensor in seen:
                continue
            steps = [(s, s.gradients[s.parameters.index(row.tensor)]) for s in training.training.steps
                     if row.tensor in s.parameters]  # fmt: skip
            later = [(step, gradient) for step, gradient in steps if step.index > call.index]
            had = any(gradient is not None for step, gradient in steps if step.index < call.index)
            lost = all(gradient is None and any(g is not None for g in step.gradients) for step, gradient in later)
            if had and lost and len(later) >= _MIN_STEPS:
                seen.add(access.tensor)
                groups[call.site].append((call, row, later[0][0]))
    for found in groups.values():
        yield RemovedParametrization(found[0][0], tuple(row for _, row, _ in found), found[0][2])


def _removes(training: MeasuredTraining, site: int) -> bool:
    node = training.facts.names.syntax.node(training.facts.trace.sites[site].span)
    return isinstance(node, ast.Call) and last_name(node.func) in _REMOVING

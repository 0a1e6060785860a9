"""Names parameters that are used after the training, of which the steps have trained a copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_COPYING = frozenset("stack clone detach requires_grad cat to parameter deepcopy __deepcopy__".split())
_LEAVING = frozenset("numpy from_numpy to_dlpack __dlpack__ asarray".split())
_PRINTING = frozenset("item tolist float int format str repr detach cpu mean sum max min".split())
_SAVING = ("save", "dump")
_WRITING_TEXT = ("json.dump", "json.dumps")  # these take no tensors
_MAX_CALLS = 12


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if nothing changes the originals or reads them while the steps are made, and no line uses the copies
    after the last step, or what was computed from them."""
    facts, steps = training.facts, training.training.steps
    if not steps or training.training.is_hidden or not is_complete(facts.trace):
        return
    first, last, stepping = steps[0].index, steps[-1].index, {step.site for step in steps}
    copies = [row for row in training.rows if row.is_stepped]
    pairs = [(copy, *each) for copy in copies for each in _originals(training, copy.tensor, first)]
    after = [call for call in facts.calls_between(last + 1) if call.site not in stepping] if pairs else []
    if not after or _saves(facts) or _are_read(facts, {row.tensor for row in copies}, first, after):
        return
    left = {access.tensor for call in facts.calls if op_name(call) in _LEAVING for access in call.inputs}
    outside = {storage for number in left for storage in facts.storages_of(number)}
    found: list[tuple[ParameterRow, Call, ParameterRow, Call]] = []
    for copy, original, made in pairs:
        used = next((call for call in after if _is_used(call, original.tensor)), None)
        is_read = any(_is_used(call, original.tensor) for call in facts.calls_between(first, last))
        is_changed = training.writes(original.tensor, since=made.index) or outside & facts.storages_of(original.tensor)
        if used is not None and original.requires_grad and not is_read and not is_changed:
            found.append((copy, made, original, used))
    if found:
        copy, made, _, used = found[0]
        rows = list(dict.fromkeys(original for _, _, original, _ in found))
        yield stands_out(
            f"after the last step, lines use {listed(rows)}, which have the values from before the training: the steps "
            f"have trained copies, as `{copy.name}`, and no line uses these then",
            facts.label("leaf_made_here", made.site, f"{as_written(facts, made)} copies them", made.index),
            facts.label("needed_here", used.site, "the originals are used here", used.index),
        )


def _saves(facts: TraceIndex) -> bool:
    """Returns whether a program may write its parameters to a file."""
    files = {site.span.file for site in facts.trace.sites}
    trees = (tree for file, tree in facts.trees() if file in files)
    called = (ast.unparse(node.func) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(name.rpartition(".")[2].startswith(_SAVING) for name in called if name not in _WRITING_TEXT)


def _originals(training: MeasuredTraining, number: int, before: int) -> Iterator[tuple[ParameterRow, Call]]:
    """Yields the parameters that no optimizer steps and whose values a tensor was made of, with the calls that copied
    them."""
    facts = training.facts
    for _, made in islice(ancestry(facts, number, before), _MAX_CALLS):
        if op_name(made).lower() not in _COPYING:
            return
        for access in made.inputs:
            row = training.row(access.tensor)
            if row is not None and not row.is_stepped and row.tensor != number:
                yield row, made


def _are_read(facts: TraceIndex, copies: set[int], first: int, after: list[Call]) -> bool:
    """Returns whether some calls read copies, or what was computed from them since the first step, but for the numbers
    of a loss that are printed."""
    storages = {storage for number in copies for storage in facts.storages_of(number)}
    same, derived = set(copies), set[int]()
    for call in facts.calls_between(first):
        inputs, outputs = ({access.tensor for access in each} for each in (call.inputs, call.outputs))
        if call.within:
            continue
        if inputs & same or {facts.storage_of(each, call.index) for each in inputs} & storages:
            derived |= outputs
            same |= outputs if op_name(call).lower() in _COPYING else set()
        elif inputs & derived:
            derived |= outputs
    return any(
        access.tensor in same
        or facts.storage_of(access.tensor, call.index) in storages
        or (access.tensor in derived and op_name(call) not in _PRINTING)
        for call in after
        for access in call.inputs
    )


def _is_used(call: Call, number: int) -> bool:
    is_read = any(access.tensor == number for access in call.inputs)
    return is_read and len(call.inputs) > 1 and op_name(call).lower() not in _COPYING

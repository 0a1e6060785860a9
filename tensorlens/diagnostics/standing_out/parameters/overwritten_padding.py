"""Names lines that draw new values for a whole embedding, also for its row of padding, which is made as zeros."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_FIXED = ("nn.init.zeros_", "nn.init.constant_")


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these lines, if nothing sets a part of the embedding before the first step.

    The sum or the mean of looked-up rows uses that of padding. Packed sequences and products with a mask do not.
    """
    facts = training.facts
    steps = training.training.steps
    for row in training.rows:
        tensor = facts.tensor(row.tensor)
        if len(tensor.shape) != 2 or not steps or not _sums_rows(facts, row.tensor):
            continue
        storages = facts.storages_of(row.tensor)
        written = [
            call
            for call in facts.calls_between(0, steps[0].index)
            for write in call.writes
            if not call.within and facts.storage_of(write.tensor, call.index) in storages
        ]
        zeroed = next((n for n, call in enumerate(written) if _fills_a_part(facts, call, tensor.shape)), None)
        if zeroed is None:
            continue
        later = [call for call in written[zeroed + 1 :] if call.site != written[zeroed].site]
        if later and _draws(later[-1]) and facts.tensor(later[-1].writes[0].tensor).shape == tensor.shape:
            yield stands_out(
                f"{as_written(facts, later[-1])} draws new values for the whole of `{row.name}`, also for the row of "
                "zeros that it was made with for padding",
                facts.label("modified_here", later[-1].site, "overwritten here", later[-1].index),
                facts.label("leaf_made_here", written[zeroed].site, "made with a row of zeros"),
            )


def _sums_rows(facts: TraceIndex, table: int) -> bool:
    """Returns whether the program takes the sum or the mean of rows of a table, without a mask before it."""
    rows: set[int] = set()
    for call in facts.calls:
        read = {access.tensor for access in call.inputs}
        if op_name(call) == "embedding_bag" and table in read:
            return True
        if op_name(call) in ("sum", "mean") and read & rows:
            return True
        if (op_name(call) == "embedding" and table in read) or (op_name(call) == "dropout" and read & rows):
            rows.update(access.tensor for access in call.outputs)
    return False


def _draws(call: Call) -> bool:
    return call.op in ("Tensor.normal_", "Tensor.uniform_") or (
        call.op.startswith("nn.init.") and call.op not in _FIXED
    )


def _fills_a_part(facts: TraceIndex, call: Call, shape: tuple[int, ...]) -> bool:
    """Returns whether library code fills a row of an embedding, as its constructor does with that of padding."""
    is_part = any(facts.tensor(write.tensor).shape != shape for write in call.writes)
    return is_part and call.op in ("Tensor.fill_", "Tensor.zero_") and bool(facts.trace.sites[call.site].through)

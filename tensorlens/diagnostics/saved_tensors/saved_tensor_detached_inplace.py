"""Finds the cause of `saved-tensor-detached-inplace`."""

from __future__ import annotations

from tensorlens.analysis.aliases import is_only_user
from tensorlens.analysis.changed_after_use import ChangedAfterUse, lost_history
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.changed_after_use import overtaken_before_backward
from tensorlens.diagnostics.shared.edits.expressions import out_of_place
from tensorlens.diagnostics.shared.edits.rebuilt_lists import rebuilt_list
from tensorlens.diagnostics.shared.wording import named
from tensorlens.records.report import Edit


def _detached(facts: TraceIndex, replaced: ChangedAfterUse) -> tuple[Edit, ...]:
    """Gives the name, or the list in a loop, detached tensors, if nothing else refers to the tensor."""
    change = replaced.change
    name = named(facts, replaced.tensor, change.index).strip("`")
    rebuilt = rebuilt_list(facts, change.site, name)
    if rebuilt is not None:
        return (rebuilt[1],)
    edit = out_of_place(facts, change.site, change.op)
    return (edit,) if edit is not None and is_only_user(facts, change, replaced.tensor, name) else ()


find = overtaken_before_backward(
    "saved-tensor-detached-inplace",
    lost_history,
    ("saved_here",),
    (
        "{code} cut {name} from its graph, which backward still needs",
        "an operation that keeps a tensor needs its history too, and {op} drops it for every user of the tensor",
        "drops the history of {name}",
    ),
    ("use `detach()`: it makes a new tensor and leaves {name} as it is", "modified_here"),
    ("or call {op} after the last backward", "modified_here"),
    edits=_detached,
)

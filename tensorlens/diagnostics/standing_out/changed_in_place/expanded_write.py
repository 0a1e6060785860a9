"""Names writes to a part of an expanded tensor: they change its other parts too."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.one_memory import elements
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_EXPANDING = frozenset(
    "Tensor.expand Tensor.expand_as Tensor.broadcast_to torch.broadcast_to torch.broadcast_tensors".split()
)
_PARTS = frozenset("Tensor.__getitem__ Tensor.select Tensor.narrow torch.select torch.narrow".split())


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these writes, each line once."""
    facts = training.facts
    seen: set[int] = set()
    for call in facts.calls:
        if call.writes and not call.within and call.site not in seen and call.inputs:
            expanded = _expanded(facts, call.inputs[0].tensor, call)
            if expanded is not None:
                seen.add(call.site)
                yield _sentence(facts, call, *expanded)


def _expanded(facts: TraceIndex, number: int, write: Call) -> tuple[int, Call, int] | None:
    """Returns the expanded tensor that a written tensor is or is a part of, the call that expanded it, and how many
    elements it has in memory."""
    if number not in {each.tensor for each in write.writes}:
        return None
    made = facts.creator(number)
    if made is not None and made.op in _PARTS and made.inputs:
        number = made.inputs[0].tensor
        made = facts.creator(number)
    if made is None or made.op not in _EXPANDING or not made.inputs:
        return None
    storage = facts.storage_of(number, write.index)
    if storage is None or storage != facts.tensor(number).storage:
        return None
    held = _held(facts, number, made)
    return (number, made, held) if held < elements(facts.tensor(number).shape) else None


def _held(facts: TraceIndex, number: int, made: Call) -> int:
    """Returns how many elements an expanded tensor has in memory: those of the tensor that was expanded, which may be
    a part of a larger one."""
    place = next((place for place, access in enumerate(made.outputs) if access.tensor == number), 0)
    source = made.inputs[place].tensor if len(made.outputs) == len(made.inputs) else made.inputs[0].tensor
    before = facts.creator(source)
    if before is not None and before.op in _EXPANDING and before.index < made.index and before.inputs:
        return _held(facts, source, before)
    return elements(facts.tensor(source).shape)


def _sentence(facts: TraceIndex, write: Call, number: int, made: Call, held: int) -> StandingOut:
    name, shape = named(facts, number, write.index), facts.tensor(number).shape
    text = (
        f"{as_written(facts, write)} writes to an expanded tensor: the {elements(shape):,} elements of {name} are "
        f"{held:,} in memory"
    )
    return stands_out(
        text,
        facts.label("modified_here", write.site, "written here", write.index),
        facts.label("view_made_here", made.site, f"expanded to shape {tuple(shape)}", made.index),
    )

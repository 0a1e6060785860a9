"""Explains a backward pass that used changed values: the lines that saved, changed and needed them."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.saved_tensors import stale_tensor
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.proof import proof_notes
from tensorlens.diagnostics.shared.wording import finding, fix, in_iteration, named, op_text, with_method
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Overwrite, StaleSavedTensor
from tensorlens.records.report import Diagnostic, Fix, Label

Place = tuple[int | None, str]  # a site, and what happened there


def backward_of(facts: TraceIndex, index: int) -> Backward | None:
    """Finds the backward pass that contains an event."""
    return next((b for b in facts.backwards if b.started <= index <= b.index), None)


def saving_call(facts: TraceIndex, stale: StaleSavedTensor) -> Call | None:
    """Finds the call that made the node which saved the tensor."""
    return facts.call_of_node(stale.sequence, stale.index)


def tensor_name(facts: TraceIndex, stale: StaleSavedTensor, saving: Call | None) -> str:
    return named(facts, stale_tensor(stale, saving), None if saving is None else saving.index)


def grouped(facts: TraceIndex, wanted: list[StaleSavedTensor]) -> Iterator[tuple[Backward, list[StaleSavedTensor]]]:
    """Groups saved tensors by change and backward pass: one mistake gives one finding."""
    groups: dict[tuple[int, int | None], tuple[Backward, list[StaleSavedTensor]]] = {}
    for stale in wanted:
        backward = backward_of(facts, stale.index)
        if backward is not None and not backward.failed:
            groups.setdefault((backward.site, _where(facts, stale)), (backward, []))[1].append(stale)
    yield from groups.values()


def _where(facts: TraceIndex, stale: StaleSavedTensor) -> int | None:
    """Returns the site of the change. A loop that changes several parameters there is one mistake."""
    if stale.overwrite is None:
        return None
    sites = facts.trace.inspection.overwrites[stale.overwrite].sites
    return sites[0] if sites else None


def values_text(stale: StaleSavedTensor) -> str:
    if stale.before:
        return f"saved as {stale.before}, used as {stale.after}"
    return f"used as {stale.after}"


def way_text(overwrite: Overwrite) -> str:
    """Explains why the write did not move the version."""
    way = overwrite.way.rpartition(".")[2] if not overwrite.way.endswith(("__get__", "__set__")) else overwrite.way
    if overwrite.way == "Tensor.data.__get__":
        return "`.data` has a version counter of its own"
    if overwrite.way == "Tensor.data.__set__":
        return "assigning `.data` puts other memory under the tensor and leaves its version as it is"
    if way in ("numpy", "__array__", "from_numpy", "as_tensor", "asarray"):
        return "a NumPy array shares this memory, and its writes move no version"
    if way.startswith("_fused"):
        return "a fused optimizer writes without moving versions"
    if way == "batch_norm":
        return f"in `train()` mode {op_text(overwrite.way)} moves its running statistics on, and not their version"
    if way in ("__dlpack__", "to_dlpack", "from_dlpack"):
        return "DLPack shares this memory, and writes through it move no version"
    if way == "set_":
        return "`set_()` made an alias with a version counter of its own"
    if way in ("untyped_storage", "storage"):
        return "a write to the storage moves no version"
    return f"{op_text(overwrite.way)} shares this memory, and writes through it move no version"


def find_overwritten(facts: TraceIndex, code: str) -> Iterator[Diagnostic]:
    """Reports saved tensors whose memory changed while the version did not, and that a backward pass then used."""
    wanted = [s for s in facts.trace.inspection.stale if s.overwrite is not None]
    for backward, group in grouped(facts, wanted):
        yield _report_overwritten(facts, code, backward, group)


def _report_overwritten(facts: TraceIndex, code: str, backward: Backward, group: list[StaleSavedTensor]) -> Diagnostic:
    stale = group[0]
    overwrite = facts.trace.inspection.overwrites[stale.overwrite or 0]
    saving = saving_call(facts, stale)
    name = tensor_name(facts, stale, saving)
    others = sorted({s.node for s in group[1:]} - {stale.node})
    more = f" (so do {', '.join(f'`{n}`' for n in others)})" if others else ""
    return finding(
        code,
        "warning",
        f"{name} was changed after autograd saved it, and its version did not move",
        f"`{stale.node}` computes its gradient from {name}{more}, {values_text(stale)}: "
        f"{way_text(overwrite)}, so the version check passes and the gradient is wrong",
        [*_changed(facts, overwrite), *_opened(facts, overwrite), *_saved(facts, group), _needed(facts, backward)],
        notes=(*_several(facts, overwrite), *proof_notes(facts, backward)),
        fixes=tuple(_fixes(facts, overwrite, name)),
        evidence={
            "node": stale.node, "slot": stale.slot, "way": overwrite.way, "before": stale.before,
            "after": stale.after, "saved": len(group),
        },
    )  # fmt: skip


def _changed(facts: TraceIndex, overwrite: Overwrite) -> Iterator[Label | None]:
    for site in overwrite.sites:
        text = (
            "the memory is changed here"
            if len(overwrite.sites) == 1
            else "the memory is changed here, or on a line like this"
        )
        yield facts.label("modified_here", site, text)


def _several(facts: TraceIndex, overwrite: Overwrite) -> Iterator[str]:
    if len(overwrite.sites) > 1:
        yield "the change happened between two torch calls, and each of the marked lines could have made it"


def _opened(facts: TraceIndex, overwrite: Overwrite) -> Iterator[Label | None]:
    lines = {span.line for site in overwrite.sites if (span := facts.span(site)) is not None}
    span = facts.span(overwrite.opened)
    if span is not None and span.line not in lines:
        yield facts.label("shared_here", overwrite.opened, f"{op_text(overwrite.way)} opens a way past the version")


def _saved(facts: TraceIndex, group: list[StaleSavedTensor]) -> Iterator[Label | None]:
    seen: set[int] = set()
    for stale in group:
        call = saving_call(facts, stale)
        if call is not None and call.site not in seen:
            seen.add(call.site)
            text = f"`{stale.node}` saved {tensor_name(facts, stale, call)} here{in_iteration(facts, call)}"
            yield facts.label("saved_here", call.site, text)


def _needed(facts: TraceIndex, backward: Backward) -> Label | None:
    return facts.label("needed_here", backward.site, "backward uses what is there now")


def _fixes(facts: TraceIndex, overwrite: Overwrite, name: str) -> Iterator[Fix]:
    if overwrite.way == "Tensor.data.__set__":
        yield fix(f"assign after backward, or copy into it under `no_grad`: autograd then notices that {name} changed")
    elif overwrite.way == "Tensor.data.__get__":
        yield fix("move the change after the backward pass")
        yield fix("write under `torch.no_grad()` instead of through `.data`: autograd then raises where this is wrong")
    elif overwrite.way.endswith(".batch_norm"):
        yield fix("call backward for the pass in `eval()` mode before the next one in `train()` mode")
        yield fix("or run both passes in the same mode")
    elif "_fused" in overwrite.way:
        yield fix("call `step()` after the last backward that needs the old parameters")
    else:
        copy = with_method(name, "clone()")
        yield fix(f"change the memory after backward, or let autograd have its own copy: {copy}")

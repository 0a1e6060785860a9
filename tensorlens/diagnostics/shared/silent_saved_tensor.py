"""Explains a backward pass that used changed values: the lines that saved, changed and needed them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from tensorlens.analysis.naming.code_text import change_text
from tensorlens.analysis.pass_around import pass_around
from tensorlens.analysis.saved_tensors import Save, shares_memory, stale_tensor
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.array_copies import ENTERING, copies_at_entry, entries
from tensorlens.diagnostics.shared.edits.expressions import with_call
from tensorlens.diagnostics.shared.edits.masks import masked_where_used
from tensorlens.diagnostics.shared.kept import Kept, described, kept_name, kept_text
from tensorlens.diagnostics.shared.parameter_copies import with_copied_parameters
from tensorlens.diagnostics.shared.proof import proof_notes
from tensorlens.diagnostics.shared.wording import finding, fix, named, op_text, source_text, with_method
from tensorlens.records.failure_context import SavedTensor
from tensorlens.records.model import Backward, Call, Span
from tensorlens.records.observations import Overwrite, StaleSavedTensor
from tensorlens.records.report import Diagnostic, Fix, Label

BROADCAST = "DistributedDataParallel.forward"  # it writes buffers
_EXACT = "a further run, which compares the memory line by line, found the line that writes"
_VALUES = 80  # characters of values in the detail line
_MOST_ENTRIES = 2  # labels
_SIGNS = {"mul_": "*", "add_": "+", "sub_": "-", "div_": "/"}


def backward_of(facts: TraceIndex, index: int) -> Backward | None:
    """Finds the backward pass that contains an event."""
    return pass_around(facts.trace, index)


def saving_call(facts: TraceIndex, stale: StaleSavedTensor) -> Call | None:
    """Finds the call that made the node which saved the tensor."""
    return facts.call_of_node(stale.sequence, stale.index, stale.node)


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


def way_text(overwrite: Overwrite) -> str:
    """Explains why PyTorch's check does not see the write."""
    way = overwrite.way.rpartition(".")[2] if not overwrite.way.endswith(("__get__", "__set__")) else overwrite.way
    if overwrite.way == "Tensor.data.__get__":
        return "PyTorch counts writes through `.data` separately"
    if overwrite.way == "Tensor.data.__set__":
        return "PyTorch does not count an assignment to `.data`, which puts other memory under the tensor, as a write"
    if way in ("numpy", "__array__", "from_numpy", "as_tensor", "asarray"):
        return "PyTorch does not see writes through a NumPy array that shares the memory"
    if way.startswith("_fused"):
        return "PyTorch does not count the writes of a fused optimizer"
    if way == "batch_norm":
        return f"PyTorch does not count that {op_text(overwrite.way)} in `train()` mode writes its running statistics"
    if way in ("__dlpack__", "to_dlpack", "from_dlpack"):
        return "PyTorch does not see writes through DLPack"
    if way == "set_":
        return "PyTorch counts writes through an alias made with `set_()` separately"
    if overwrite.way == BROADCAST:
        return "`DistributedDataParallel` copied the buffers of rank 0 over those of this rank and kept their version"
    if way in ("untyped_storage", "storage"):
        return "PyTorch does not count writes to a storage"
    return f"PyTorch does not count writes through what {op_text(overwrite.way)} returns"


def find_overwritten(facts: TraceIndex, code: str, by_broadcast: bool = False) -> Iterator[Diagnostic]:
    """Reports saved tensors whose memory changed while the version did not, and that a backward pass then used:
    those that a broadcast of buffers changed, or the others."""
    overwrites = facts.trace.inspection.overwrites
    found = [s for s in facts.trace.inspection.stale if s.overwrite is not None]
    wanted = [s for s in found if (overwrites[s.overwrite or 0].way == BROADCAST) is by_broadcast]
    for backward, group in grouped(facts, wanted):
        yield _report_overwritten(facts, code, backward, group)


def _report_overwritten(facts: TraceIndex, code: str, backward: Backward, group: list[StaleSavedTensor]) -> Diagnostic:
    stale = group[0]
    overwrite = facts.trace.inspection.overwrites[stale.overwrite or 0]
    saving = saving_call(facts, stale)
    name = tensor_name(facts, stale, saving)
    notes = proof_notes(facts, backward)
    return finding(
        code,
        "warning",
        _title(facts, overwrite, stale, saving),
        f"{way_text(overwrite)}, so its check of kept values passes and the gradient is computed from the new values",
        [
            *_changed(facts, overwrite),
            *_opened(facts, overwrite, group),
            *_saved(facts, group),
            _needed(facts, backward),
        ],
        notes=notes,
        fixes=tuple(_with_edit_first(facts, overwrite, name, group, backward)),
        evidence={
            "node": stale.node, "slot": stale.slot, "way": overwrite.way, "before": stale.before,
            "after": stale.after, "saved": len(group),
        },
        detail=(_detail(facts, group, saving), *(_EXACT for _ in range(overwrite.exact))),
    )  # fmt: skip


def _title(facts: TraceIndex, overwrite: Overwrite, stale: StaleSavedTensor, saving: Call | None) -> str:
    what = described(facts, stale_tensor(stale, saving), None if saving is None else saving.index)
    span = facts.span(overwrite.sites[0]) if len(overwrite.sites) == 1 else None
    text = "" if span is None else change_text(facts.names.syntax.node(span)) or source_text(facts, overwrite.sites[0])
    changed = f"`{text}` changed {what}" if text else f"{what} was changed"
    return f"{changed} unnoticed before backward used it"


def _detail(facts: TraceIndex, group: list[StaleSavedTensor], saving: Call | None) -> str:
    stale = group[0]
    values = f": {stale.before} then, {stale.after} in backward" if stale.before else f": {stale.after} in backward"
    values = values if len(values) <= _VALUES else ""
    others = len(group) - 1
    more = f"; {others} more saved tensor{'s' if others > 1 else ''} changed with it" if others else ""
    what = kept_name(facts, Kept(saving, stale_tensor(stale, saving), stale.slot))
    return f"`{stale.node}` saved {what}{values}{more}"


def _changed(facts: TraceIndex, overwrite: Overwrite) -> Iterator[Label | None]:
    for site in overwrite.sites:
        others = [span.line for other in overwrite.sites if other != site and (span := facts.span(other)) is not None]
        is_vague = bool(others) and not overwrite.exact
        text = f"changed here, or in line {' or '.join(map(str, others[:2]))}" if is_vague else "changed here"
        yield facts.label("modified_here", site, text)


def _opened(facts: TraceIndex, overwrite: Overwrite, group: list[StaleSavedTensor]) -> Iterator[Label | None]:
    """Yields the lines that gave access to the memory: of an array, all that made kept tensors in it."""
    lines = {span.line for site in overwrite.sites if (span := facts.span(site)) is not None}
    sites = [overwrite.opened]
    if overwrite.way.rpartition(".")[2] in ENTERING:
        made = [call.site for call in entries(facts, [save_of(facts, each) for each in group])]
        sites = list(dict.fromkeys((*sites, *made)))[:_MOST_ENTRIES]
    for site in sites:
        span = facts.span(site)
        if span is not None and span.line not in lines:
            yield facts.label("shared_here", site, _opened_text(overwrite))


def _opened_text(overwrite: Overwrite) -> str:
    way = overwrite.way.rpartition(".")[2]
    if way in ("from_numpy", "as_tensor", "asarray", "numpy", "__array__"):
        return "shares memory with the array"
    return f"{op_text(overwrite.way)} gives access to the memory"


def _saved(facts: TraceIndex, group: list[StaleSavedTensor]) -> Iterator[Label | None]:
    seen: set[int] = set()
    for stale in group:
        call = saving_call(facts, stale)
        if call is not None and call.site not in seen:
            seen.add(call.site)
            yield facts.label(
                "saved_here", call.site, kept_text(facts, Kept(call, stale_tensor(stale, call), stale.slot))
            )


def _needed(facts: TraceIndex, backward: Backward) -> Label | None:
    return facts.label("needed_here", backward.site, "computes with the new values")


def _with_edit_first(
    facts: TraceIndex, overwrite: Overwrite, name: str, group: list[StaleSavedTensor], backward: Backward
) -> Iterator[Fix]:
    """Yields the fixes: a copy of the array or the tensor that was written, if nothing reads it later; else a product
    in place of the write, if it can be an edit, or copies of what the operations keep."""
    saves = [save_of(facts, stale) for stale in group]
    sites = overwrite.sites or (backward.site,)
    own = list(_fixes(facts, overwrite, name, saves[0].call))
    if overwrite.way == BROADCAST:
        yield from own
        return
    written = _copy_of_the_written(facts, overwrite, saves, group)
    is_product = written is None and bool(own[0].edits)
    first = written or with_copied_parameters(facts, saves, sites[0], backward.site)
    others = [each for each in own if (first is None or not each.edits) and not (is_product and each is own[0])]
    if is_product:
        yield own[0]
    if first is not None:
        yield replace(first, title=f"or {first.title}") if is_product else first
        is_repeated = first is written or others[0].title.startswith("let autograd have its own copy")
        others = others[1:] if is_repeated else others
    for position, each in enumerate(others[: 3 - is_product - (first is not None)]):
        needs_or = position == 0 and (is_product or first is not None) and not each.title.startswith("or ")
        yield replace(each, title=f"or {each.title}") if needs_or else each


def save_of(facts: TraceIndex, stale: StaleSavedTensor) -> Save:
    """Returns what a call saved, in the form that a failed version check has."""
    call = saving_call(facts, stale)
    number = stale_tensor(stale, call)
    tensor = None if number is None else facts.tensor(number)
    shape, storage = ((), None) if tensor is None else (tensor.shape, tensor.storage)
    saved = SavedTensor(stale.node, stale.sequence, stale.slot, number, storage, shape, *stale.versions, None)
    return Save(saved, call, number)


def _copy_of_the_written(
    facts: TraceIndex, overwrite: Overwrite, saves: list[Save], group: list[StaleSavedTensor]
) -> Fix | None:
    """Copies what gave access to the memory, if no call reads the memory after the write: it was written for itself."""
    span, way = facts.span(overwrite.opened), overwrite.way.rpartition(".")[2]
    save = saves[0]
    number = save.tensor if save.tensor is not None else overwrite.tensor
    if way in ENTERING:
        return copies_at_entry(facts, saves, [_written_at(facts, each) for each in group])
    if span is None or way != "numpy" or number is None or _is_read_after(facts, number, overwrite.index):
        return None
    edit = with_call(facts, span, "copy")
    if edit is None:
        return None
    return fix(f"write into a copy of the array; {named(facts, number)} then stays as it was", edit, place=span)


def _written_at(facts: TraceIndex, stale: StaleSavedTensor) -> int:
    return facts.trace.inspection.overwrites[stale.overwrite or 0].index


def _is_read_after(facts: TraceIndex, number: int, index: int) -> bool:
    later = facts.calls_between(index)
    return any(shares_memory(facts, access.tensor, number) for call in later for access in call.inputs)


def _fixes(facts: TraceIndex, overwrite: Overwrite, name: str, saving: Call | None) -> Iterator[Fix]:
    place = facts.span(overwrite.sites[0]) if len(overwrite.sites) == 1 else None
    saved = None if saving is None else facts.span(saving.site)
    way = overwrite.way.rpartition(".")[2]
    if overwrite.way == "Tensor.data.__set__":
        yield fix("assign after backward", place=place)
        yield fix(f"or copy into {name} under `torch.no_grad()`: PyTorch then raises an error here", place=place)
    elif overwrite.way == "Tensor.data.__get__":
        yield from _fixes_of_data(facts, name, place)
    elif way == "batch_norm":
        yield fix("call backward for the pass in `eval()` mode before the next one in `train()` mode", place=place)
        yield fix("or run both passes in the same mode", place=saved)
    elif overwrite.way == BROADCAST:
        yield fix("call `backward` before the next forward pass of the `DistributedDataParallel` model", place=place)
        yield fix("or compute with a copy of the buffer", place=saved)
        yield fix("or wrap it with `broadcast_buffers=False`, if the buffers of ranks may differ")
    elif "_fused" in overwrite.way:
        yield fix("run the forward pass again after this step, or call backward before it", place=place)
    elif way in ("from_numpy", "as_tensor", "asarray", "from_dlpack") and overwrite.opened is not None:
        span = facts.span(overwrite.opened)
        yield fix("let autograd have a copy: later writes then do not reach it", place=span)
    else:
        copy = with_method(name, "clone()")
        yield fix(f"let autograd have its own copy, {copy}: later writes then do not reach it", place=saved)
        yield fix("or change the memory only after backward", place=place)


def _fixes_of_data(facts: TraceIndex, name: str, place: Span | None) -> Iterator[Fix]:
    """Suggests what to do instead of a write through `.data`."""
    node = None if place is None else facts.names.syntax.node(place)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        sign = _SIGNS.get(node.func.attr)
        owner, other = ast.unparse(node.func.value).removesuffix(".data"), ast.unparse(node.args[0])
        if sign and isinstance(node.args[0], ast.Name | ast.Attribute) and not node.keywords:
            new = f"{owner} {sign} {other}"
            edits = masked_where_used(facts, place) if place is not None else None
            text = f"compute with a new tensor, `{new}`, and do not write: `{owner}` then stays as it was"
            yield fix(text, *(edits or ()), place=place)
    yield fix("write only after backward", place=place)
    yield fix(f"or write to {name} under `torch.no_grad()`, without `.data`: PyTorch then raises an error", place=place)

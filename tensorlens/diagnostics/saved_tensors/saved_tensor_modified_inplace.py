"""Finds the cause of `saved-tensor-modified-inplace`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tensorlens.analysis.saved_tensors import (
    Alias,
    InplaceChange,
    Save,
    SavedTensorChange,
    is_saved_on_line,
    saved_tensor_change,
)
from tensorlens.analysis.trace_index import TraceIndex, is_result_slot
from tensorlens.diagnostics.shared.wording import finding, fix, in_iteration, named, op_text, severity_of, source_text
from tensorlens.records.model import Backward, Call, Failure
from tensorlens.records.report import Diagnostic, Fix, Label

_OTHERS = 3
_ONLY_IN_PLACE = (
    *("copy_", "fill_", "fill_diagonal_", "set_", "zero_", "apply_", "map_", "random_"),
    *("normal_", "log_normal_", "uniform_", "cauchy_", "exponential_", "geometric_"),
)  # methods without a variant that makes a new tensor
CODE = "saved-tensor-modified-inplace"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports the saved tensor that PyTorch raised on; the others that fail the version check become notes."""
    change = saved_tensor_change(facts, failure)
    if change is None:
        return finding(
            CODE,
            severity_of(failure),
            "a tensor was changed in place after autograd saved it",
            "backward found a saved tensor at a version that is not the saved one; the graph could not be read",
            [facts.label("needed_here", failure.site, "backward")],
            fixes=(fix("keep what backward needs: change a copy made with `clone()`"),),
        )
    return finding(
        CODE,
        severity_of(failure),
        f"{_name(facts, change.save)} was changed in place after autograd saved it",
        _explanation(facts, change.save),
        _labels(facts, change),
        notes=(*_change_notes(facts, change.changes), *_other_notes(facts, change.others)),
        fixes=_fixes(facts, change),
        evidence=_evidence(change),
    )


def _name(facts: TraceIndex, save: Save) -> str:
    return named(facts, save.tensor, None if save.call is None else save.call.index)


def _name_or_result(facts: TraceIndex, save: Save) -> str:
    return "its result" if is_result_slot(save.saved.slot) else _name(facts, save)


def _explanation(facts: TraceIndex, save: Save) -> str:
    node = f"`{save.saved.node}`" if save.saved.node else "the backward pass"
    return (
        f"{node} computes its gradient from {_name_or_result(facts, save)} at version {save.saved.expected}; what is "
        f"there now is version {save.saved.found}, so the gradient would be wrong"
    )


# --- labels and notes ------------------------------------------------------------------------------------------------


def _labels(facts: TraceIndex, change: SavedTensorChange) -> Iterator[Label | None]:
    save, saved = change.save, change.save.saved
    if change.first is not None:
        yield facts.label("modified_here", change.first.event.site, _change_text(facts, change.first))
    if change.alias is not None:
        yield _alias_label(facts, change.alias)
    if save.call is not None:
        node = f"`{saved.node}`" if saved.node else "autograd"
        what = _name_or_result(facts, save)
        text = f"{node} saved {what} here, at version {saved.expected}{in_iteration(facts, save.call)}"
        yield facts.label("saved_here", save.call.site, text)
    needs = f"backward needs version {saved.expected} and finds version {saved.found}"
    yield facts.label("needed_here", change.needed_at, needs)


def _change_text(facts: TraceIndex, change: InplaceChange) -> str:
    event, write = change.event, change.write
    within = f" by `{event.within}()`" if isinstance(event, Call) and event.within else ""
    again = in_iteration(facts, event) if isinstance(event, Call) and not within else ""
    return f"changed in place here{within}: version {write.before} -> {write.after}{again}"


def _alias_label(facts: TraceIndex, alias: Alias) -> Label | None:
    at = alias.call.index
    role = "shared_here" if facts.tensor(alias.tensor).base is None else "view_made_here"
    text = f"{named(facts, alias.tensor, at)} shares memory with {named(facts, alias.source, at)}"
    return facts.label(role, alias.call.site, text)


def _change_notes(facts: TraceIndex, changes: Sequence[InplaceChange]) -> Iterator[str]:
    if not changes:
        yield "the call that changed it was not seen (see the gaps below)"
    more = [change.event for change in changes[1:] if change.event.site != changes[0].event.site]
    spans = [span for event in more[:3] if (span := facts.span(event.site)) is not None]
    if spans:
        lines = ", ".join(dict.fromkeys(str(span.line) for span in spans))
        yield f"it was changed again on line {lines}"


def _other_notes(facts: TraceIndex, others: Sequence[Save]) -> Iterator[str]:
    """Writes notes on the other saved tensors that fail the version check: one for each node, line and name."""
    groups: dict[tuple[str, str, str], list[Save]] = defaultdict(list)
    for save in others:
        span = None if save.call is None else facts.span(save.call.site)
        where = "" if span is None else f" on line {span.line}"
        what = f"its `{save.saved.slot}`" if save.tensor is None else _name(facts, save)
        groups[f"`{save.saved.node}`", where, what].append(save)
    for (node, where, what), group in list(groups.items())[:_OTHERS]:
        times = "" if len(group) == 1 else f", {len(group)} times"
        versions = list(dict.fromkeys(str(save.saved.expected) for save in group))
        saved_at = f"version{'s' if len(versions) > 1 else ''} {_joined(versions)}"
        found = group[0].saved.found
        yield f"{node}{where} has the same trouble{times}: it saved {saved_at} of {what}, and would find {found}"


def _joined(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _evidence(change: SavedTensorChange) -> dict[str, object]:
    saved = change.save.saved
    changes = [(getattr(each.event, "op", ""), each.write) for each in change.changes]
    return {
        "node": saved.node,
        "slot": saved.slot,
        "saved_version": saved.expected,
        "found_version": saved.found,
        "changes": [{"op": op, "before": write.before, "after": write.after} for op, write in changes],
    }


# --- fixes -----------------------------------------------------------------------------------------------------------


def _fixes(facts: TraceIndex, change: SavedTensorChange) -> tuple[Fix, ...]:
    if change.first is None:
        return (fix("keep what backward needs: change a copy made with `clone()`"),)
    event = change.first.event
    if isinstance(event, Backward):
        return (fix("use the gradient before the next backward accumulates into it, or `clone()` it first"),)
    if event.within:
        step = f"`{source_text(facts, event.site)}`"
        return (
            fix(f"call {step} after the last backward that needs the old parameters"),
            fix(f"or run the forward pass again after {step}: its graph is made from the new values"),
        )
    return tuple(_fixes_of_call(facts, change, event, change.first.write.tensor))


def _fixes_of_call(facts: TraceIndex, change: SavedTensorChange, call: Call, written: int) -> Iterator[Fix]:
    """Suggests fixes for a change in place by a call, not by an optimizer step or backward."""
    trained = next((n for n in (written, change.save.tensor) if _is_trained(facts, n, call.index)), None)
    maker = _maker_of_copy(facts, change.save, written)
    method = call.op.rpartition(".")[2]
    is_item = method == "__setitem__"
    is_in_place = is_item or (_is_direct(facts, call) and method.endswith("_"))
    is_view = facts.tensor(written).base is not None
    if maker is not None:
        name = named(facts, written, call.index)
        yield fix(f"change a copy: make {name} with {op_text(maker.op)} followed by `.clone()`")
    elif trained is not None:
        backward, line = (f"`{source_text(facts, site)}`" for site in (change.needed_at, call.site))
        parameter = named(facts, trained, call.index)
        yield fix(f"move {line} after {backward}: until then the forward pass needs {parameter} as it was")
    elif is_item or (is_in_place and (method in _ONLY_IN_PLACE or is_view)):
        saves = is_saved_on_line(facts, change.save, call.site)
        copied = fix(f"save a copy: {_name(facts, change.save)} as `.clone()`")
        yield copied if saves else _change_a_copy(facts, change.save, call, written)
        if is_item:
            yield fix("or make the new value without writing: `torch.where`, `masked_fill()`, `torch.stack` of parts")
    else:
        yield _make_a_new_tensor(facts, change.save, call, written)


def _make_a_new_tensor(facts: TraceIndex, save: Save, call: Call, written: int) -> Fix:
    augmented = facts.names.syntax.augmented(facts.trace.sites[call.site])
    if augmented is not None:
        target, sign = augmented
        return fix(f"make a new tensor: `{target} = {target} {sign} ...` in place of `{target} {sign}= ...`")
    if not _is_direct(facts, call):
        return fix(f"give `{source_text(facts, call.site)}` a copy of {_name(facts, save)} made with `clone()`")
    if call.op.endswith("_"):
        new = op_text(call.op[:-1])
        return fix(f"use {new} instead of {op_text(call.op)}, and assign the new tensor that it makes")
    name = named(facts, written, call.index)
    return fix(f"let {op_text(call.op)} make a new tensor instead of writing its result into {name}")


def _change_a_copy(facts: TraceIndex, save: Save, call: Call, written: int) -> Fix:
    base, creator = facts.tensor(written).base, facts.creator(written)
    at = call.index if base is None or creator is None else creator.index
    name = facts.name(written if base is None else base, at)
    if not name.replace(".", "_").isidentifier():
        return fix(f"change a `.clone()` of {_name(facts, save)}")
    where = "this line" if base is None else "the view of it is taken"
    return fix(f"change a copy: `{name} = {name}.clone()` before {where}")


def _is_direct(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the line itself calls the op, not library code that the line calls."""
    return facts.names.syntax.is_direct(facts.trace.sites[call.site], call.op)


def _is_trained(facts: TraceIndex, number: int | None, at: int) -> bool:
    """Returns whether the tensor is a leaf that requires grad. Such a leaf is written on purpose, with recording
    off."""
    return number is not None and facts.is_leaf_requiring_grad(number, at)


def _maker_of_copy(facts: TraceIndex, save: Save, written: int) -> Call | None:
    """Finds the call that made the written tensor from the saved one, if it is not a view and the script's line made
    it."""
    call = facts.creator(written)
    if call is None or written == save.tensor or facts.tensor(written).base is not None or not _is_direct(facts, call):
        return None
    return call if any(access.tensor == save.tensor for access in call.inputs) else None

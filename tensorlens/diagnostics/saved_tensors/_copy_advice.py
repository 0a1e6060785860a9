"""Advises on a write to a tensor that no optimizer trains: make a new tensor, change a copy, or save a copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tensorlens.analysis.aliases import is_only_user
from tensorlens.analysis.saved_tensors import Save, SavedTensorChange, is_saved_on_line
from tensorlens.analysis.shared_frame import is_argument, is_local, is_returned
from tensorlens.analysis.trace_index import TraceIndex, is_result_slot
from tensorlens.diagnostics.saved_tensors._inplace_layers import inplace_layer, is_called_for_its_write
from tensorlens.diagnostics.shared.edits.expressions import (
    expanded_assignment,
    out_of_place,
    with_call,
    without_inplace,
)
from tensorlens.diagnostics.shared.edits.kept_copies import copies_for
from tensorlens.diagnostics.shared.edits.rebuilt_lists import rebuilt_list, result_of_hook
from tensorlens.diagnostics.shared.edits.statements import inserted_before
from tensorlens.diagnostics.shared.kept import described, is_made_inside, is_plain, operation
from tensorlens.diagnostics.shared.wording import fix, named, op_text, source_text, with_method
from tensorlens.records.model import Call
from tensorlens.records.report import Edit, Fix

_ONLY_IN_PLACE = (
    *("copy_", "fill_", "fill_diagonal_", "set_", "zero_", "apply_", "map_", "random_"),
    *("normal_", "log_normal_", "uniform_", "cauchy_", "exponential_", "geometric_"),
)  # methods without a variant that makes a new tensor
_STAYS = "; what else refers to it then stays as it was"


def fixes_of_a_write(facts: TraceIndex, change: SavedTensorChange, call: Call, written: int) -> Iterator[Fix]:
    """Suggests fixes for a change in place by a call, not by an optimizer step or backward.

    What operations keep can always be a copy: no value changes then. A write to something else comes first only where
    nothing else reads the written tensor.
    """
    kept = _kept_copies(facts, change, call)
    other = _other_write(facts, change, call, written)
    is_repeated = call.op.endswith("__setitem__")  # a copy of the whole for each item would be slow
    is_better = other is not None and other.is_harmless and other.fix.edits and not is_repeated
    if other is None or (kept is not None and not is_better):
        yield kept or fix(
            f"keep a copy for backward: {_cloned_name(facts, change.save)}",
            place=None if change.save.call is None else facts.span(change.save.call.site),
        )
        if other is not None and not (kept is not None and _is_one_of_several(facts, change, other)):
            yield replace(other.fix, title=f"or {other.title}")
    else:
        yield replace(other.fix, title=other.title)
    if call.op.endswith("__setitem__"):
        yield fix("or build it without writing: `torch.stack`, `torch.where`", place=facts.span(call.site))


def _kept_copies(facts: TraceIndex, change: SavedTensorChange, call: Call) -> Fix | None:
    """Lets the operations keep copies, where an edit can do so for all that failed the check."""
    saves, save = [change.save, *change.others], change.save
    counters = [None if each.tensor is None else facts.tensor(each.tensor).counter for each in saves]
    same = [each for each, counter in zip(saves, counters, strict=True) if counter == counters[0]]
    edits = copies_for(facts, saves, call.site) or copies_for(facts, same, call.site)
    if not edits:
        return None
    lines = sorted({edit.span.line for edit in edits})
    place = None if save.call is None else facts.span(save.call.site)
    what = "its result" if is_result_slot(save.saved.slot) else described(facts, save.tensor, _at(save))
    where = f" (lines {', '.join(map(str, lines))})" if len(lines) > 1 else ""
    text = f"let {operation(facts, save.call)} keep a copy of {what}{where}: no value changes"
    if call.mode != "grad" and facts.requires_grad(change.first.write.tensor if change.first else 0, call.index - 1):
        text += "; the gradient still leaves out this write"
    return fix(text, *edits, place=place)


def _is_one_of_several(facts: TraceIndex, change: SavedTensorChange, other: _OtherWrite) -> bool:
    """Returns whether a help would copy one memory, while backward needs another one that was overwritten too."""
    saves = [each for each in (change.save, *change.others) if each.tensor is not None]
    return bool(other.fix.edits) and len({facts.tensor(each.tensor or 0).counter for each in saves}) > 1


def _cloned_name(facts: TraceIndex, save: Save) -> str:
    return with_method(named(facts, save.tensor, _at(save)), "clone()")


@dataclass(frozen=True, slots=True)
class _OtherWrite:
    """A help that changes where the write goes, and whether nothing else reads the written tensor."""

    fix: Fix
    is_harmless: bool

    @property
    def title(self) -> str:
        stays = "" if self.is_harmless or "stays as it was" in self.fix.title else _STAYS
        return f"{self.fix.title}{stays}"


def _other_write(facts: TraceIndex, change: SavedTensorChange, call: Call, written: int) -> _OtherWrite | None:
    """Suggests to write into another tensor than the one that backward needs."""
    maker = _maker_of_copy(facts, change.save, written)
    method = call.op.rpartition(".")[2]
    is_item = method == "__setitem__"
    is_in_place = is_item or (_is_direct(facts, call) and method.endswith("_"))
    is_view = facts.tensor(written).base is not None
    name = named(facts, written, call.index).strip("`")
    if maker is not None:
        return _OtherWrite(_copied_by_maker(facts, maker, written, call), True)
    if call.mode != "grad" and facts.requires_grad(written, call.index - 1):
        return None  # a new tensor that is made here would have no history
    if is_item or (is_in_place and (method in _ONLY_IN_PLACE or is_view)):
        return _change_a_copy(facts, change.save, call, written)
    made = None if change.save.tensor is None else facts.creator(change.save.tensor)
    inside = not _is_direct(facts, call) and made is not None and is_made_inside(facts, made, call)
    alone = is_only_user(facts, call, written, name) and not _is_thrown_away(facts, call)
    harmless = inside or (alone and (_keeps_its_name(facts, call, name) or not _is_read_later(facts, call, written)))
    new = _make_a_new_tensor(facts, change.save, call, written)
    is_whole = len(new.edits) > 0 and ("hook's result" in new.title or "a new list" in new.title)
    return _OtherWrite(new, harmless or is_whole)


def _keeps_its_name(facts: TraceIndex, call: Call, name: str) -> bool:
    """Returns whether the name of the written tensor refers to the result after the line, also without the write."""
    site = facts.trace.sites[call.site]
    if facts.names.syntax.augmented(site) is not None:
        return True
    return site.targets == (name,) or (_is_direct(facts, call) and facts.names.syntax.is_whole_statement(site))


def _is_read_later(facts: TraceIndex, call: Call, written: int) -> bool:
    later = (each for each in facts.calls if each.index > call.index and each.site != call.site)
    return any(access.tensor == written for each in later for access in each.inputs)


def _is_thrown_away(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a line uses a layer only for its write: without the write, the line would do nothing."""
    site = facts.trace.sites[call.site]
    return not _is_direct(facts, call) and facts.names.syntax.is_whole_statement(site)


def _copied_by_maker(facts: TraceIndex, maker: Call, written: int, call: Call) -> Fix:
    """Suggests to write into a copy. A write through `detach()` would be missing in the gradient."""
    alias = _alias_read_later(facts, call, written)
    span = facts.trace.sites[maker.site].span
    edit = with_call(facts, span, "clone")
    name = named(facts, written, call.index)
    how = f"make {name} with `.clone()`" if is_plain(name) else "add `.clone()` here"
    stays = "" if alias is None else f"; {named(facts, alias)} then stays as it was"
    return fix(f"change a copy: {how}{stays}", *_edits(edit), place=span)


def _at(save: Save) -> int | None:
    return None if save.call is None else save.call.index


def _edits(edit: Edit | None) -> tuple[Edit, ...]:
    return () if edit is None else (edit,)


def _make_a_new_tensor(facts: TraceIndex, save: Save, call: Call, written: int) -> Fix:
    """Suggests the form of the operation that makes a new tensor."""
    place = facts.span(call.site)
    augmented = facts.names.syntax.augmented(facts.trace.sites[call.site])
    if augmented is not None:
        edit = expanded_assignment(facts, call.site)
        target, sign = augmented
        form = f": `{target} = {target} {sign} ...`" if edit is None else ""
        return _with_new_tensor(facts, call, written, f"make a new tensor{form}", edit)
    if not _is_direct(facts, call):
        return _in_library(facts, save, call)
    if call.op.endswith("_"):
        edit = out_of_place(facts, call.site, call.op)
        new, old = op_text(call.op[:-1]), op_text(call.op)
        text = f"use {new}" if edit is not None else f"use {new} in place of {old}, and assign the tensor that it makes"
        return _with_new_tensor(facts, call, written, text, edit)
    edit = without_inplace(facts, call)
    name = named(facts, written, call.index)
    if edit is not None:
        return _with_new_tensor(facts, call, written, "leave `inplace=True` out, so that it makes a new tensor", edit)
    return fix(f"let {op_text(call.op)} make a new tensor instead of writing its result into {name}", place=place)


def _with_new_tensor(facts: TraceIndex, call: Call, written: int, text: str, edit: Edit | None) -> Fix:
    """Adds what a new tensor leaves as it was: the caller's tensor, or an alias that is read later."""
    plain = named(facts, written, call.index).strip("`")
    alias = _alias_read_later(facts, call, written)
    rebuilt = rebuilt_list(facts, call.site, plain) if edit is None else None
    if rebuilt is not None:
        text = f"make new tensors, and a new list `{rebuilt[0]}` of them"
        return fix(text, rebuilt[1], place=facts.span(call.site))
    if plain in facts.names.syntax.loop_names() and edit is None:
        text = f"make new tensors, and a new list of them: assigning to the loop variable `{plain}` does not change it"
    elif is_argument(facts, call.site, plain) and "." not in plain and "[" not in plain:
        if not is_returned(facts, call.site, plain):
            returned = result_of_hook(facts, call.site, plain)
            edits = () if returned is None or edit is None else (edit, returned)
            why = "the hook's result then takes its place" if edits else "because the caller's tensor stays as it was"
            return fix(f"{text}; return it, {why}", *edits, place=facts.span(call.site))
        text += "; the caller's tensor then stays as it was"
    elif alias is not None:
        text += f"; {named(facts, alias)} then stays as it was"
    return fix(text, *_edits(edit), place=facts.span(call.site))


def _alias_read_later(facts: TraceIndex, call: Call, written: int) -> int | None:
    """Finds another tensor in the same memory, made before the write, that a later call reads."""
    storage = facts.tensor(written).storage
    for later in facts.calls:
        for access in later.inputs if later.index > call.index else ():
            tensor = facts.tensor(access.tensor)
            is_other = access.tensor != written and storage is not None and tensor.storage == storage
            if is_other and (tensor.created_by or 0) < call.index:
                return access.tensor
    return None


def _in_library(facts: TraceIndex, save: Save, call: Call) -> Fix:
    """Suggests a fix for a write by a module or a library function that the line calls."""
    made = None if save.tensor is None else facts.creator(save.tensor)
    inside = made is not None and is_made_inside(facts, made, call)
    layer = inplace_layer(facts, call, inside)
    name = described(facts, save.tensor, _at(save))
    if layer is not None:
        node, file, position = layer
        text, span = ast.unparse(node), facts.span_of(node, file)
        plain = ast.unparse(ast.Call(node.func, [], []))
        is_used = inside or not is_called_for_its_write(facts, call)
        edits = (Edit(span, plain),) if len(node.args) + len(node.keywords) == 1 and is_used else ()
        owner = source_text(facts, call.site).partition("(")[0]
        if inside:
            return fix(
                f"`{owner}[{position}]` is `{text}`, which writes into its input: use `{plain}`", *edits, place=span
            )
        writes = f"`{owner}` {'begins with' if position else 'is'} `{text}`, which writes into its input"
        return fix(f"{writes}: use `{plain}`; that input then stays as it was", *edits, place=span)
    line = source_text(facts, call.site)
    if not line:  # no source is known
        return fix(f"change a copy of {name}, made with `clone()`", place=facts.span(call.site))
    if inside:
        text = f"have `{line}` make a new tensor where it now calls {op_text(call.op)} (look for `inplace=True`)"
        return fix(text, place=facts.span(call.site))
    return fix(f"pass a copy to `{line}`, made with `clone()`: it writes into {name}", place=facts.span(call.site))


def _change_a_copy(facts: TraceIndex, save: Save, call: Call, written: int) -> _OtherWrite | None:
    """Suggests to give the written tensor's name a copy before the write, or before the view through which it goes."""
    if is_saved_on_line(facts, save, call.site):
        return None  # the copy would be saved, and written in the next iteration
    base, creator = facts.tensor(written).base, facts.creator(written)
    at = call.index if base is None or creator is None else creator.index
    owner = written if base is None else base
    name = facts.name(owner, at)
    site = call.site if base is None or creator is None else creator.site
    place = facts.span(site)
    if not name.replace(".", "_").isidentifier() or not is_local(facts, site, name) or place is None:
        return None
    where = "this line" if base is None else "the view of it is taken"
    text = f"change a copy: `{name} = {name}.clone()` before {where}"
    if is_argument(facts, site, name) and "." not in name:
        text += "; the caller's tensor then stays as it was"
    harmless = is_only_user(facts, creator if base is not None and creator is not None else call, owner, name)
    edit = inserted_before(facts, place.file, place.line, f"{name} = {name}.clone()")
    return _OtherWrite(fix(text, *(_edits(edit) if harmless else ()), place=place), harmless)


def _is_direct(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the line itself calls the op, not library code that the line calls."""
    return facts.names.syntax.is_direct(facts.trace.sites[call.site], call.op)


def _maker_of_copy(facts: TraceIndex, save: Save, written: int) -> Call | None:
    """Finds the call that made the written tensor from the saved one, if it is not a view and the script's line made
    it."""
    call = facts.creator(written)
    if call is None or written == save.tensor or facts.tensor(written).base is not None or not _is_direct(facts, call):
        return None
    return call if any(access.tensor == save.tensor for access in call.inputs) else None

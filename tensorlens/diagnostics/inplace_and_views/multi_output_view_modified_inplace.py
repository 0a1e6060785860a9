"""Finds the cause of `multi-output-view-modified-inplace`, and whether the tensor that was split is read again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_at
from tensorlens.analysis.naming.variables import read_in
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.inplace_and_views._joint_views import (
    Edits,
    JointViews,
    as_new_tensors,
    joined_again,
    named_again,
    through_base,
    under_no_grad,
)
from tensorlens.diagnostics.shared.edits.statements import moved_after
from tensorlens.diagnostics.shared.edits.writes import statements_of, target_of
from tensorlens.diagnostics.shared.kept import is_plain
from tensorlens.diagnostics.shared.rejected import rejected_calls
from tensorlens.diagnostics.shared.rejected_call import LabelledSite, RejectedCall
from tensorlens.diagnostics.shared.roles.tensors import chain_of_views, failing_call, modified
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic, Fix, Label

CODE = "multi-output-view-modified-inplace"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for rejected in rejected_calls(facts, CODE):
        view, made = _joint_view(rejected)
        name = rejected.name(view) if view is not None else "a view"
        yield finding(
            CODE,
            rejected.severity,
            f"PyTorch refuses {rejected.written()}: {name} is one of several views that were made together",
            "autograd can't rewrite the history of the other views when one of them changes",
            _labels(rejected, view, made),
            fixes=tuple(_fixes(rejected, view, made)),
            evidence={"op": rejected.op, "message": rejected.message},
        )


def _joint_view(rejected: RejectedCall) -> tuple[int | None, Call | None]:
    """Finds the view among those that the rejected tensor was taken from that a call made together with others.

    A custom Function may hide the base of what it returns: then the rejected tensor itself counts.
    """
    for number in chain_of_views(rejected) or [access.tensor for access in rejected.inputs[:1]]:
        made = rejected.facts.creator(number)
        together = (call for call in rejected.facts.producers(number, rejected.index) if len(call.outputs) > 1)
        if made is not None and made.op.rpartition(".")[2] not in _SPLITTING:
            made = next(together, None)
        if made is not None:
            return number, made
    return None, None


_SPLITTING = ("unbind", "split", "chunk", "tensor_split", "split_with_sizes", "hsplit", "vsplit", "dsplit")


def _labels(rejected: RejectedCall, view: int | None, made: Call | None) -> Iterator[Label | None]:
    facts, place = rejected.facts, _changed(rejected)
    yield facts.label("modified_here", place.site, place.text)
    if place.site != rejected.site:
        yield facts.label("needed_here", rejected.site, f"{op_text(rejected.op)} uses it afterwards")
    first = next(iter(chain_of_views(rejected)), None)
    if first is not None and first != view and view is not None:
        taken = facts.creator(first)
        text = f"{rejected.name(first)} is a view of {rejected.name(view)}"
        yield facts.label("view_made_here", None if taken is None else taken.site, text)
    if view is not None and made is not None:
        base = facts.tensor(view).base
        kind = "one of several views" if base is None else f"a view of {rejected.name(base)}"
        yield facts.label("view_made_here", made.site, f"{rejected.name(view)} is {kind}")


def _changed(rejected: RejectedCall) -> LabelledSite:
    place = modified(rejected)
    return failing_call(rejected) if place is None else place


def _fixes(rejected: RejectedCall, view: int | None, made: Call | None) -> Iterator[Fix]:
    """Suggests to write through the base if the function reads the base again, else to make a new tensor."""
    facts, changed = rejected.facts, _changed(rejected)
    if changed.site != rejected.site:
        yield from _later_views(rejected, changed, view, made)
        return
    name = _whole(rejected, made)
    taken, here = None if made is None else facts.span(made.site), facts.span(rejected.site)
    whole = f"`{name}`" if name else "the tensor that was split"
    views = _views(rejected, made, name)
    if made is not None and made.inputs and _is_leaf(rejected, made.inputs[0].tensor):
        set_values = f"to set values of {whole}, take the views and write inside `with torch.no_grad():`"
        edits = under_no_grad(views) if views is not None else None
        yield fix(f"{set_values}; no gradient goes through the write", *(edits or ()), place=taken)
        yield fix(f"if the change is part of the computation, make a new tensor; {whole} then stays as it was")
        return
    text = f"make a new tensor instead of writing, also for the other views; {whole} then stays as it was"
    if views is not None and not views.is_read_below():
        made_new = as_new_tensors(views) or named_again(views) or joined_again(views) or through_base(views)
        yield fix(text, *(made_new or ()), place=here)
        return
    again = _rebuilt(views) if views is not None else None
    if again is not None:
        yield fix(
            "make new tensors instead of writing, and join them again for what reads the whole", *again, place=here
        )
        return
    edits = through_base(views) if views is not None else None
    through = f"write through {whole}, with an index for each part" + (f": `{name}[...]`" if name else "")
    yield fix(through, *(edits or ()), place=taken)
    yield fix(f"or {text}", place=here)


def _is_leaf(rejected: RejectedCall, number: int) -> bool:
    """Returns whether a tensor is a leaf that requires grad, or a view of one."""
    base = rejected.facts.tensor(number).base
    return rejected.is_leaf(number) or (base is not None and rejected.is_leaf(base))


def _whole(rejected: RejectedCall, made: Call | None) -> str:
    """Returns the name of the tensor that was split, or of one that it is a view of; "" if none has a name."""
    number = made.inputs[0].tensor if made is not None and made.inputs else None
    while number is not None:
        if is_plain(rejected.name(number)):
            return rejected.name(number).strip("`")
        taken, storage = rejected.facts.creator(number), rejected.facts.tensor(number).storage
        sources = taken.inputs if taken is not None and rejected.is_view(number) else ()
        number = next((a.tensor for a in sources if rejected.facts.tensor(a.tensor).storage == storage), None)
    return ""


def _rebuilt(views: JointViews) -> Edits | None:
    """Makes the edits that join new parts to a whole; None if a write through the whole is as good.

    A write that reads its own view, as in `row /= row.norm()`, would overwrite what backward needs.
    """
    edits = as_new_tensors(views)
    if edits is not None:
        return edits
    target = target_of(views.write)
    text = "" if target is None else views.text(target)
    is_plain_write = through_base(views) is not None and _count(views, text) < 2
    return None if is_plain_write else joined_again(views)


def _count(views: JointViews, name: str) -> int:
    return sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(views.write))


def _views(rejected: RejectedCall, made: Call | None, base: str) -> JointViews | None:
    facts, span = rejected.facts, rejected.facts.span(rejected.site)
    write = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or write is None or made is None or target_of(write) is None:
        return None
    return JointViews(facts, span.file, made, write, base)


def _later_views(rejected: RejectedCall, changed: LabelledSite, view: int | None, made: Call | None) -> Iterator[Fix]:
    """Suggests to take the views below the change, if nothing between the two lines reads them."""
    facts, place = rejected.facts, rejected.facts.span(changed.site)
    taken = None if made is None else facts.span(made.site)
    edits = None
    if place is not None and taken is not None and place.file == taken.file and taken.line < place.line:
        statement = statement_at(facts, taken.file, taken.line)
        names = [] if made is None else [name.lstrip("*") for name in facts.trace.sites[made.site].targets]
        body = statements_of(facts, taken.file, taken.line)
        between = [each for each in body if taken.line < each.lineno <= (place.end_line or place.line)]
        if statement is not None and names and not any(name in read_in(each) for each in between for name in names):
            edits = moved_after(facts, taken.file, taken.line, place.line)
    name = rejected.name(view)
    yield fix(
        f"take {name} and the other views below line {place.line if place else '?'}, where they see the change",
        *(edits or ()),
        place=taken,
    )
    yield fix("or make a new tensor here instead of writing; the views then stay as they were", place=place)

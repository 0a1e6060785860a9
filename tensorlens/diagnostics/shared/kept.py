"""Says what an operation kept for backward, in the words of somebody who uses PyTorch and has not read its source."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensorlens.analysis.saved_tensors import Save
from tensorlens.analysis.trace_index import TraceIndex, is_result_slot
from tensorlens.diagnostics.shared.wording import in_iteration, named, source_text
from tensorlens.records.model import Backward, Call
from tensorlens.records.source import shown_path

_SHORT = 24  # characters of an operation that a label repeats
_LABEL = 46  # characters of a label that fit beside the underline
_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.AugAssign)


def operation(facts: TraceIndex, call: Call | None) -> str:
    """Returns an operation as a person writes it: "`nn.Linear`", "sigmoid", "`x * y`", "`Square`"."""
    if call is None:
        return "autograd"
    if call.op.endswith(".apply"):
        return f"`{call.op.removesuffix('.apply').rpartition('.')[2]}`"
    if call.op.startswith("ctx."):
        return f"`{call.op}`"
    site = facts.trace.sites[call.site]
    layer = "" if facts.names.syntax.is_direct(site, call.op) else layer_class(facts, call)
    if layer:
        return f"`{layer}`"
    if isinstance(facts.names.syntax.node(site.span), _OPERATIONS):
        text = source_text(facts, call.site, 80)
        return f"`{text}`" if len(text) <= _SHORT else _sign(facts, call)
    if call.op.startswith("autograd."):
        return f"`{call.op}`"
    name = call.op.removesuffix(".__get__").rpartition(".")[2]
    return "indexing" if name == "__getitem__" else name.strip("_")


def _sign(facts: TraceIndex, call: Call) -> str:
    node = facts.names.syntax.node(facts.trace.sites[call.site].span)
    sign = ast.unparse(ast.BinOp(ast.Name("_"), node.op, ast.Name("_"))) if isinstance(node, ast.BinOp) else ""
    return f"this `{sign.strip('_ ')}`" if sign else "this expression"


def layer_class(facts: TraceIndex, call: Call) -> str:
    """Returns the layer whose parameters a call used, as its constructor is written: "nn.Linear"; "" if not known.

    The line that made a parameter calls the layer's class.
    """
    short = call.op.rpartition(".")[2].replace("_", "").lower()
    for access in call.inputs:
        made = facts.creator(access.tensor) if facts.tensor(access.tensor).type == "Parameter" else None
        node = None if made is None else facts.names.syntax.node(facts.trace.sites[made.site].span)
        text = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        name = text.rpartition(".")[2]
        if name.lower().startswith(short) and name[:1].isupper():
            return text
    return ""


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor that an operation kept for backward: the call, the tensor, and the node's slot for it."""

    call: Call | None
    tensor: int | None
    slot: str


def kept_of(save: Save) -> Kept:
    return Kept(save.call, save.tensor, save.saved.slot)


def kept_name(facts: TraceIndex, kept: Kept) -> str:
    """Returns what was kept: "its result", "its `weight`", "`x`"."""
    if is_result_slot(kept.slot):
        return "its result"
    name = tensor_name(facts, kept)
    part = name.strip("`").rpartition(".")[2]
    if not is_plain(name) and kept.call is not None and kept.tensor in {a.tensor for a in kept.call.inputs}:
        return "its input"
    if kept.call is None or kept.tensor is None or facts.tensor(kept.tensor).type != "Parameter":
        return name
    is_layer = not facts.names.syntax.is_direct(facts.trace.sites[kept.call.site], kept.call.op)
    return f"its `{part}`" if is_layer and layer_class(facts, kept.call) and part.isidentifier() else name


def tensor_name(facts: TraceIndex, kept: Kept) -> str:
    return named(facts, kept.tensor, None if kept.call is None else kept.call.index)


def kept_text(facts: TraceIndex, kept: Kept) -> str:
    """Writes the label of the line that kept a tensor, short enough to fit beside the underline."""
    when = "" if kept.call is None else short_iteration(facts, kept.call)
    text = f"{operation(facts, kept.call)} kept {kept_name(facts, kept)}"
    if len(text) + len(when) > _LABEL:
        return text
    return f"{text} for backward" if not when and len(text) + 13 <= _LABEL else f"{text}{when}"


def short_iteration(facts: TraceIndex, event: Call) -> str:
    """Returns the iteration that an event belongs to, " in the 3rd iteration"; "" if it is none of a loop."""
    when = in_iteration(facts, event)
    return when if when.endswith(" iteration") else ""


def described(facts: TraceIndex, number: int | None, at: int | None = None) -> str:
    """Returns the name of a tensor for a sentence; for one without a name, the expression and the line that made it."""
    name = named(facts, number, at)
    made = None if number is None else facts.creator(number)
    if number is None or made is None or is_plain(name) or not name.startswith("`"):
        return name
    where = line_from(facts, made.site, getattr(facts.event(at), "site", None))
    return f"the tensor made by {name} ({where})"


def is_made_inside(facts: TraceIndex, made: Call, event: Call | Backward) -> bool:
    """Returns whether one line of the script, which calls a layer or a library function, ran both calls."""
    return (
        isinstance(event, Call)
        and made.site == event.site
        and not any(facts.names.syntax.is_direct(facts.trace.sites[call.site], call.op) for call in (made, event))
    )


def is_plain(name: str) -> bool:
    """Returns whether a quoted name is a name, attribute or item, and not an expression that computes something."""
    try:
        tree = ast.parse(name.strip("`"), mode="eval").body
    except SyntaxError:  # cut short
        return False
    while isinstance(tree, ast.Attribute | ast.Subscript):
        tree = tree.value
    return isinstance(tree, ast.Name)


def line_from(facts: TraceIndex, site: int | None, other: int | None) -> str:
    """Returns "line 5" for a site, or "net.py:5" if `other` is a site in a different file."""
    span, around = facts.span(site), facts.span(other)
    if span is None:
        return "an earlier line"
    return f"line {span.line}" if around is None or around.file == span.file else file_line(facts, site)


def file_line(facts: TraceIndex, site: int | None) -> str:
    span = facts.span(site)
    return "" if span is None else f"{shown_path(span.file, facts.trace.script.folder)}:{span.line}"

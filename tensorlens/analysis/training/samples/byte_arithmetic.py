"""Finds sums, differences and products of bytes that wrap around and become numbers for a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes
from tensorlens.records.model import Call
from tensorlens.records.training_samples import WrappedAround

_SAME = frozenset(
    "getitem view reshape flatten unflatten squeeze unsqueeze permute transpose t movedim contiguous clone detach cpu "
    "cuda index_select select unbind iter split chunk stack cat abs expand repeat narrow flip roll to type clamp clip "
    "clamp_min clamp_max".split()
)
_SHIFTING = frozenset("roll pad constant_pad_nd cat concat hstack vstack".split())
_SUMS = frozenset("add radd sub rsub subtract neg".split())
_BYTES = ("uint8", "int8")
_FAR, _MOST_ABOVE, _MOST_PASSES, _MOST_OPERANDS = 3_000, 3_000, 3, 40
_WRAPS = frozenset(("256", "255"))
_OF_CIRCLES = frozenset("hue hues hsv hls hsl angle angles phase phases checksum crc".split())  # words of names
_JOINING = frozenset(("stack", "cat", "concat", "concatenate"))
_CIRCLES = frozenset("sin cos remainder fmod atan2 polar cumsum".split())
_MASKS = frozenset("mul where masked_fill masked_scatter".split())
_TARGETS = frozenset("mse_loss l1_loss smooth_l1_loss huber_loss sub rsub cross_entropy kl_div".split())


@dataclass(frozen=True, slots=True)
class WrappedBytes:
    """A call whose result has wrapped around, and the one that makes floats of it."""

    call: Call
    converted: Call
    measured: WrappedAround


def wrapped_bytes(facts: TraceIndex) -> Iterator[WrappedBytes]:
    """Yields these calls, one for each line.

    A further sum of bytes may give the exact values again, as `a + (b - a)` does, so it is left alone.
    """
    measured = facts.trace.inspection.wrapped_around
    if not measured or _wraps_on_purpose(facts):
        return
    used, seen = _used_lines(facts), set[int]()
    for each in measured:
        call = facts.call(each.index)
        if (
            call is None
            or call.site in seen
            or not call.outputs
            or call.writes
            or _may_be_exact(facts, call)
            or _is_of_neighbours(facts, call)
            or _is_put_back(facts, call)
        ):
            continue
        converted = _converted(facts, call)
        if converted is not None and converted.site in used and not _is_meant(facts, converted):
            seen.add(call.site)
            yield WrappedBytes(call, converted, each)


def _wraps_on_purpose(facts: TraceIndex) -> bool:
    """Returns whether the program takes remainders of bytes, so that it may mean to wrap around."""
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    found = ((node.op, ast.unparse(node.right)) for node in nodes if isinstance(node, ast.BinOp))
    names = {last_name(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return any(_OF_CIRCLES & set(words_of(name)) for name in names) or any(
        (isinstance(op, ast.Mod | ast.BitAnd) and right in _WRAPS)
        or (isinstance(op, ast.Div) and right in ("256", "256.0"))  # a share of a circle
        for op, right in found
    )


def _is_meant(facts: TraceIndex, converted: Call) -> bool:
    """Returns whether wrapped numbers may be right: they are places on a circle, a mask leaves others out, or a loss
    compares with them, as with differences that a later sum decodes."""
    known = {access.tensor for access in converted.outputs}
    for call in islice(facts.calls_between(converted.index), _FAR):
        name, read = op_name(call), {access.tensor for access in call.inputs}
        if call is not converted and known.isdisjoint(read):
            continue
        if name in _CIRCLES or (name in _MASKS and any(facts.tensor(each).dtype == "bool" for each in read)):
            return True
        is_tracked = any(facts.requires_grad(access.tensor, call.index) for access in call.outputs)
        if is_tracked and (name in _TARGETS or "binary_cross_entropy" in name):
            return True
        if not is_tracked:
            known |= {access.tensor for access in call.outputs}
    return False


def _is_of_neighbours(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call may compare neighbours within rows or columns, as the filters of image coders do."""
    if len(call.inputs) != 2 or op_name(call) not in _SUMS:
        return False
    chains = [list(_taken_by(facts, access.tensor)) for access in call.inputs]
    memory = [
        {facts.tensor(number).storage for number in (own.tensor, *(made.inputs[0].tensor for made in chain))}
        for own, chain in zip(call.inputs, chains, strict=True)
    ]
    return not memory[0].isdisjoint(memory[1]) and any(_is_shifted(facts, made) for chain in chains for made in chain)


def _is_put_back(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a result is joined with the other channels of its tensor, as a hue, which turns round."""
    bases = [made.inputs[0].tensor for access in call.inputs for made in _taken_by(facts, access.tensor)]
    shapes = {facts.tensor(base).shape for base in bases}
    memory = {facts.tensor(base).storage for base in bases}
    known = {access.tensor for access in call.outputs}
    for later in islice(facts.calls_between(call.index + 1), _FAR if bases else 0):
        read = [access.tensor for access in later.inputs]
        if known.isdisjoint(read) or op_name(later) not in _SAME | _JOINING:
            continue
        others = {facts.tensor(each).storage for each in read if each not in known}
        if op_name(later) in _JOINING and others and memory >= others:
            if any(facts.tensor(access.tensor).shape in shapes for access in later.outputs):
                return True
        known |= {access.tensor for access in later.outputs}
    return False


def _taken_by(facts: TraceIndex, number: int) -> Iterator[Call]:
    """Yields the calls by which bytes are taken from a tensor, without arithmetic."""
    for _ in range(_MOST_OPERANDS):
        made = facts.creator(number)
        if made is None or not made.inputs or op_name(made) not in _SAME | _SHIFTING:
            return
        yield made
        number = made.inputs[0].tensor


def _is_shifted(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a call may leave out rows or columns, or move them."""
    one, other = (facts.tensor(access.tensor).shape for access in (made.inputs[0], made.outputs[0]))
    return op_name(made) in _SHIFTING or len(one) != len(other) or one[-2:] != other[-2:]


def _may_be_exact(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a sum is given bytes that have wrapped around, as the last sum of `a + (b - a)`."""
    if op_name(call) not in _SUMS:
        return False
    lines = {made.site for each in facts.trace.inspection.wrapped_around if (made := facts.call(each.index))}
    waiting = [(access.tensor, call.index) for access in call.inputs]
    for number, before in waiting:
        made = next(iter(facts.producers(number, before)), None)
        if made is not None and facts.tensor(number).dtype in _BYTES and len(waiting) < _MOST_OPERANDS:
            if made.site in lines and made.site != call.site:
                return True
            waiting += [(access.tensor, made.index) for access in made.inputs]
    return False


def _converted(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the call that makes floats of a result, if no other arithmetic reads its bytes."""
    known, found = {access.tensor for access in call.outputs}, list[Call]()
    own = {facts.tensor(number).dtype for number in known}
    for later in islice(facts.calls_between(call.index + 1), _FAR):
        if known.isdisjoint(access.tensor for access in later.inputs):
            continue
        types = {facts.tensor(access.tensor).dtype for access in later.outputs}
        if any(dtype.startswith(("float", "bfloat")) for dtype in types):
            found.append(later)
        elif op_name(later) in _SAME and types <= own:  # the other type may have the exact values
            known |= {access.tensor for access in later.outputs}
        elif types & {"int16", "int32", "int64", *_BYTES} or later.writes:
            return None
    return found[0] if found else None


def _used_lines(facts: TraceIndex) -> set[int]:
    """Returns the lines that the values of losses come from."""
    used = set[int]()
    for backward in islice(examined_passes(facts), _MOST_PASSES):
        for root in backward.roots:
            used |= {made.site for _, made in ancestry(facts, root.tensor, backward.index, _MOST_ABOVE)}
    return used

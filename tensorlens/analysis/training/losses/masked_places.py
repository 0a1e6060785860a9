"""Finds losses of masked models that keep the places which the model is shown, or whose targets the mask has changed.

A model that is to fill in hidden places gets a token there: an id, or a trained vector. The loss has to take these
places, and their targets must be the values from before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.counted_masks import filled_value
from tensorlens.analysis.training.loss_calls import examined_passes, is_error, loss_calls
from tensorlens.analysis.training.triangles import NOT
from tensorlens.analysis.training.whole_index import is_whole_index
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Backward, Call

_SAME = frozenset(
    "bool float long int to type_as view reshape flatten unsqueeze squeeze expand expand_as clone".split()
)
_VIEWS = frozenset("view reshape flatten long to contiguous clone t T transpose getitem permute mT".split())
_FILLS = frozenset("setitem masked_fill masked_fill_ where".split())
_PRODUCTS, _CHOICES = frozenset(("mul", "rmul", "imul")), frozenset(("getitem", "masked_select"))
_RANDOM = frozenset("rand rand_like bernoulli uniform randperm argsort multinomial".split())
_CLASSES = frozenset(("cross_entropy", "nll_loss"))
_OF_MISSING = re.compile("observ|missing|valid|avail|present|nan|known", re.IGNORECASE)
_MAX_CALLS, _MAX_MASK, _MAX_LATER = 10, 24, 60
_MOST_SPECIAL = 4  # ids of no word, as of the token that hides


@dataclass(frozen=True, slots=True)
class MaskedPlaces:
    """The call that chooses places for a loss, and the one that hides places from the model. `is_changed` says that
    the loss takes the hidden places, and the hiding call has written to its targets."""

    chosen: Call
    hiding: Call
    loss: Call
    is_changed: bool


@dataclass(frozen=True, slots=True)
class _Choice:
    """A call that chooses places by a mask: those where the mask that it comes from is True, or the others."""

    call: Call
    mask: int
    where: bool
    source: int = -1  # what is chosen from


def masked_places(facts: TraceIndex) -> Iterator[MaskedPlaces]:
    """Yields these losses, one for each line."""
    reported, last = set[int](), -1
    for backward in examined_passes(facts):
        calls = list(loss_calls(facts, backward))
        losses = [call for call in calls if op_name(call) in _CLASSES or is_error(call)]
        found = _found(facts, backward, calls, losses[0], last) if len(losses) == 1 else None
        last = backward.index
        if found is not None and found.loss.site not in reported:
            reported.add(found.loss.site)
            yield found


def _found(facts: TraceIndex, backward: Backward, calls: list[Call], loss: Call, last: int) -> MaskedPlaces | None:
    kept = [*_of_products(facts, calls), *_of_target(facts, loss)]
    masks = {each.mask for each in kept}
    if len(masks) != 1 or len({each.where for each in kept}) != 1 or not _is_drawn(facts, min(masks), loss.index, last):
        return None
    mask, where = min(masks), kept[0].where
    drawn = facts.creator(mask)
    for call in facts.calls_between(drawn.index if drawn else last, loss.index):
        hidden = _hidden(facts, call) if op_name(call) in _FILLS | _PRODUCTS else None
        if hidden is None or hidden.mask != mask:
            continue
        if hidden.where != where:
            is_of_missing = any(_says_missing(facts, each, mask) for each in (call, *(choice.call for choice in kept)))
            if is_of_missing or not _is_of_ids(facts, call, loss):
                return None
            return MaskedPlaces(kept[0].call, call, loss, is_changed=False)
        if call.writes and any(_comes_after(facts, each, call) for each in kept):
            return MaskedPlaces(kept[0].call, call, loss, is_changed=True)
    return None


def _is_of_ids(facts: TraceIndex, hiding: Call, loss: Call) -> bool:
    """Returns whether a loss over classes may be one over the ids that are hidden: tags of words are others."""
    ids, shape = _rows_read(facts, hiding), facts.tensor(loss.inputs[0].tensor).shape
    if op_name(loss) not in _CLASSES or not ids:
        return True
    classes = shape[1] if len(shape) > 1 else shape[0]
    return classes >= ids - _MOST_SPECIAL and 2 * classes > ids


def _says_missing(facts: TraceIndex, call: Call, mask: int) -> bool:
    """Returns whether the name of a mask says that the data has no values at some places, and so no targets."""
    masks = {access.tensor for access in call.inputs if (_mask(facts, access.tensor, call.index) or (-1,))[0] == mask}
    return any(_OF_MISSING.search(facts.name(each, call.index)) for each in masks | {mask})


def _of_products(facts: TraceIndex, calls: list[Call]) -> Iterator[_Choice]:
    """Yields the products with a mask, and the choices by one, of what a loss gives for each place."""
    for call in calls:
        plain = [each.tensor for each in call.inputs if not facts.requires_grad(each.tensor, call.index - 1)]
        if len(plain) == 1 and len(call.inputs) == 2 and op_name(call) in _PRODUCTS | _CHOICES:
            mask = _mask(facts, plain[0], call.index)
            if mask is not None:
                yield _Choice(call, *mask)


def _of_target(facts: TraceIndex, loss: Call) -> Iterator[_Choice]:
    """Yields the call that chooses places of the targets of classes, or sets the others to a number below zero."""
    if op_name(loss) not in _CLASSES or len(loss.inputs) < 2:
        return
    number, before = loss.inputs[1].tensor, loss.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return
        found = _of_fill(facts, made) if op_name(made) in _FILLS else None
        if op_name(made) in _CHOICES and len(made.inputs) == 2:
            mask = _mask(facts, made.inputs[1].tensor, made.index)
            found = None if mask is None else _Choice(made, *mask, made.inputs[0].tensor)
        if found is not None or op_name(made) not in _VIEWS:
            if found is not None:
                yield found
            return
        number, before = made.inputs[0].tensor, made.index


def _of_fill(facts: TraceIndex, call: Call) -> _Choice | None:
    """Reads `labels[mask] = -100` and its like: the places that keep their targets."""
    value = filled_value(facts, call)
    filled = None if value is None or value >= 0 else _filled(facts, call)
    others = [access.tensor for access in call.inputs if facts.tensor(access.tensor).dtype.startswith("int")]
    if filled is None or not others:
        return None
    return _Choice(call, filled[0], not filled[1], others[0])


def _filled(facts: TraceIndex, call: Call) -> tuple[int, bool] | None:
    """Returns the mask by which a call sets places to one value, and whether it does so where the mask is True."""
    masks = [access.tensor for access in call.inputs if facts.tensor(access.tensor).dtype == "bool"]
    mask = _mask(facts, masks[0], call.index) if len(masks) == 1 else None
    if mask is None:
        return None
    if op_name(call) != "where":
        return mask
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Call) or call.op.startswith("Tensor.") or len(node.args) != 3:
        return None
    numbers = [_is_token(facts, call, each) for each in node.args[1:]]
    if len(call.inputs) == 2:  # the mask, and all but one number
        numbers = [not _names_input(facts, call, each) for each in node.args[1:]]
    return None if numbers[0] == numbers[1] else (mask[0], mask[1] == numbers[0])


def _names_input(facts: TraceIndex, call: Call, node: ast.expr) -> bool:
    """Returns whether a side of a `where()` is the tensor that it takes, as far as its name says so."""
    (number,) = (access.tensor for access in call.inputs if facts.tensor(access.tensor).dtype != "bool")
    name = facts.name(number, call.index)
    return bool(name) and (last_name(node) or ast.unparse(node)) in (name, name.rpartition(".")[2])


def _is_token(facts: TraceIndex, call: Call, node: ast.expr) -> bool:
    """Returns whether a side of a `where()` is one number, or a trained vector."""
    if written_number(facts, node) is not None:
        return True
    sides = [access.tensor for access in call.inputs if facts.tensor(access.tensor).type.endswith("Parameter")]
    given = [each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)]
    names = {facts.name(each, call.index).rpartition(".")[2] for each in sides}
    texts = {each.id if isinstance(each, ast.Name) else each.attr for each in given}
    return len(sides) == 1 and bool(names & texts)


def _hidden(facts: TraceIndex, call: Call) -> _Choice | None:
    """Returns where a call gives a model an id, or a trained vector, in place of what it is to fill in."""
    if op_name(call) in _PRODUCTS:
        trained = [each.tensor for each in call.inputs if facts.tensor(each.tensor).type.endswith("Parameter")]
        others = [each.tensor for each in call.inputs if each.tensor not in trained]
        mask = _mask(facts, others[0], call.index) if len(trained) == len(others) == 1 else None
        return None if mask is None else _Choice(call, *mask)
    filled = _filled(facts, call)
    if filled is None:
        return None
    is_trained = any(facts.tensor(each.tensor).type.endswith("Parameter") for each in call.inputs)
    is_one = len(call.inputs) == 2 or filled_value(facts, call) is not None
    return _Choice(call, *filled) if is_trained or (is_one and _rows_read(facts, call)) else None


def _rows_read(facts: TraceIndex, hiding: Call) -> int:
    """Returns the rows of the embedding that reads the ids that a call has set to one number in some places."""
    made = {access.tensor for access in hiding.outputs} | {write.tensor for write in hiding.writes}
    if not any(facts.tensor(each).dtype.startswith("int") for each in made):
        return 0
    for call in islice(facts.calls_between(hiding.index + 1), _MAX_LATER):
        read = [access.tensor for access in call.inputs]
        if made.isdisjoint(read):
            continue
        if op_name(call) == "embedding":
            return max(facts.tensor(each).shape[0] for each in read if facts.tensor(each).shape and each not in made)
        made |= {access.tensor for access in call.outputs} if op_name(call) in _VIEWS else set()
    return 0


def _comes_after(facts: TraceIndex, chosen: _Choice, hiding: Call) -> bool:
    """Returns whether the targets that a call chooses from are what another one has written to before."""
    number, before = chosen.source, chosen.call.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None) if number >= 0 else None
        if made is None or not made.inputs or made.index == hiding.index:
            return made is not None and made.index == hiding.index
        if op_name(made) not in _VIEWS - {"clone"}:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False


def _mask(facts: TraceIndex, number: int, before: int) -> tuple[int, bool] | None:
    """Returns the mask that another one comes from, and whether both are True at the same places."""
    is_same = True
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or len(made.inputs) != 1 or made.writes:
            break
        if op_name(made) in NOT or _is_one_less(facts, made):
            is_same = not is_same
        elif op_name(made) not in _SAME and not is_whole_index(facts, made):
            break
        number, before = made.inputs[0].tensor, made.index
    return number, is_same


def _is_one_less(facts: TraceIndex, call: Call) -> bool:
    node = facts.node_at(call.site)
    is_difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and op_name(call) in ("rsub", "sub")
    return is_difference and written_number(facts, node.left) == 1  # type: ignore[union-attr]


def _is_drawn(facts: TraceIndex, mask: int, before: int, last: int) -> bool:
    """Returns whether a mask with places was drawn at random since the pass before."""
    places = len(facts.tensor(mask).shape)
    return places > 1 and any(
        call.index > last and op_name(call).rstrip("_") in _RANDOM and len(facts.tensor(number).shape) == places
        for number, call in ancestry(facts, mask, before, _MAX_MASK)
    )

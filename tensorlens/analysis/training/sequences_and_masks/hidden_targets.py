"""Finds out whether no loss of a run has an id as a target: the id is ignored, masked, or has a weight of zero.

A loss ignores it by `ignore_index`, or the targets that equal it are set to the number that the loss ignores, or what
the loss gives for each place is multiplied by a mask, or chosen by it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import MAX_CALLS
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes
from tensorlens.analysis.training.sequences_and_masks.target_masks import HiddenId, Use, comparison_of, filled_by_mask
from tensorlens.analysis.training.sequences_and_masks.token_targets import has_terms_by_hand, is_of_tokens
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Backward, Call, Span

_FUNCTIONS = frozenset(("cross_entropy", "nll_loss"))
_MODULES = frozenset(("CrossEntropyLoss", "NLLLoss"))
_OTHERS = ("_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")  # may train where to end
_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_CHOICES = frozenset(("getitem", "masked_select"))
_Are = Callable[[TraceIndex, Call, int], bool]  # of the targets of a loss
_DEFAULT = -100.0  # of `ignore_index`


@dataclass(frozen=True, slots=True)
class _Loss:
    call: Call
    masks: tuple[Use, ...]  # by which what it gives for each place is multiplied, or chosen


def hidden_where(facts: TraceIndex, hidden: HiddenId, are_such: _Are | None = None) -> tuple[Span, bool] | None:
    """Returns the line that hides an id from the first loss, and whether that is the loss itself, if each loss of the
    run has it hidden and no other term of these is written by hand. `are_such` chooses among the targets."""
    found: list[tuple[Span, bool]] = []
    passes = [(backward, list(_losses(facts, backward))) for backward in examined_passes(facts)]
    for _, losses in passes:
        for loss in losses:
            where = _hidden_from(facts, loss, hidden, are_such)
            if where is None:
                return None
            found.append(where)
    by_hand = (has_terms_by_hand(facts, backward, [each.call for each in losses]) for backward, losses in passes)
    return found[0] if found and not any(by_hand) else None


def _losses(facts: TraceIndex, backward: Backward) -> Iterator[_Loss]:
    """Yields the losses that a pass starts from. A choice of one value for each target is one, too."""
    waiting: list[tuple[int, int, tuple[Use, ...]]] = [(root.tensor, backward.index, ()) for root in backward.roots]
    seen = set[tuple[int, tuple[Use, ...]]]()
    for number, before, masks in waiting:
        call = next(iter(facts.producers(number, before)), None)
        if call is None or (call.index, masks) in seen or len(seen) > MAX_CALLS:
            continue
        seen.add((call.index, masks))
        inputs = [access.tensor for access in call.inputs]
        trained = [each for each in inputs if facts.requires_grad(each, call.index - 1)]
        plain = [each for each in inputs if each not in trained]
        name = op_name(call)
        is_choice = (name == "gather" and plain) or (name == "getitem" and len(plain) > 1)
        if name in _FUNCTIONS or name.endswith(_OTHERS) or is_choice:
            yield _Loss(call, masks)
            continue
        more = ((plain[-1], call.index),) if plain and name in _PRODUCTS | _CHOICES else ()
        waiting += [(each, call.index, masks + more) for each in trained]


def _hidden_from(facts: TraceIndex, loss: _Loss, hidden: HiddenId, are_such: _Are | None) -> tuple[Span, bool] | None:
    call, inputs = loss.call, [access.tensor for access in loss.call.inputs]
    span = facts.span(call.site)
    if span is None or len(inputs) < 2 or (op_name(call) not in _FUNCTIONS and op_name(call).endswith(_OTHERS)):
        return None
    target = inputs[-1 if op_name(call) == "getitem" else 1]
    if not is_of_tokens(facts, call, target, loss.masks):
        return None
    if are_such is not None and not are_such(facts, call, target):
        return None
    for mask in loss.masks:
        compared = comparison_of(facts, mask, target, hidden, at_id=False)
        at = None if compared is None else facts.span(compared.site)
        if at is not None:
            return at, False
    ignored = _ignored(facts, call, span)
    if ignored and all(hidden.is_it(each) for each in ignored):
        return span, True
    if ignored is None or any(map(hidden.is_it, ignored)):
        return None

    def is_ignored(node: ast.expr) -> bool:
        return _is_one(facts, span.file, node, ignored)

    made = filled_by_mask(facts, (target, call.index), hidden, is_ignored)
    at = None if made is None else facts.span(made.site)
    return None if at is None else (at, False)


def _ignored(facts: TraceIndex, call: Call, span: Span) -> list[ast.expr] | None:
    """Returns what a loss is given as `ignore_index`: [] for its default; None if it has none, or is not clear.

    Of a module, all that the program makes count.
    """
    if op_name(call) not in _FUNCTIONS:
        return None
    node = facts.node_at(call.site)
    if isinstance(node, ast.Call) and called_name(node) in _FUNCTIONS:
        return [each.value for each in node.keywords if each.arg == "ignore_index"]
    makers = [
        each for _, tree in facts.trees() for each in ast.walk(tree) if called_name(each) in _MODULES
        or called_name(each) in _FUNCTIONS
    ]  # fmt: skip
    given = [
        [each.value for each in made.keywords if each.arg == "ignore_index"]
        for made in makers
        if isinstance(made, ast.Call)
    ]
    return [each for one in given for each in one] if all(given) or not any(given) else None


def _is_one(facts: TraceIndex, file: str, node: ast.expr, ignored: list[ast.expr]) -> bool:
    """Returns whether a number that targets are set to is the one that a loss ignores."""
    value = _value(facts, file, node)
    if not ignored:
        return value == _DEFAULT
    same = (bool(last_name(node)) and last_name(each) == last_name(node) for each in ignored)
    return all(same) or (value is not None and all(_value(facts, file, each) == value for each in ignored))


def _value(facts: TraceIndex, file: str, node: ast.expr) -> float | None:
    value = written_number(facts, node)
    return number_of(facts, file, node) if value is None else value

"""Finds a program whose padding has the id of the end of a sequence, which its loss ignores with the padding.

The program puts the end behind its sequences and looks for it in what the model gives, but no loss has it as a target.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.name_words import words_of_last
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.records.model import Span

_PADDING, _END = frozenset(("pad", "padding")), frozenset(("eos", "eot", "end", "stop"))
_PLACES = frozenset(("end", "stop"))  # these lower-case words also name a place in a sequence
_LOSSES = frozenset(("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"))
_FILLING = frozenset("full full_like new_full append tensor insert fill_ index_fill_".split())
_SEARCHING = frozenset("index eq ne find count".split())
_IGNORED = "ignore_index"


@dataclass(frozen=True, slots=True)
class SharedId:
    """Two names of one id, and the loss that ignores it."""

    padding: str
    end: str
    given: Span
    loss: Span


def shared_ids(facts: TraceIndex) -> Iterator[SharedId]:
    """Yields the first such id, if each loss of the program ignores it."""
    calls = [(node, file) for file, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    losses = [(node, file) for node, file in calls if last_name(node.func) in _LOSSES]
    ignored = [keyword.value for node, _ in losses for keyword in node.keywords if keyword.arg == _IGNORED]
    if not losses or len(ignored) < len(losses) or not _trains(facts):
        return
    bound = _bound(facts)
    for padding, end in ((one, other) for one in bound for other in bound if _are_named(one, other)):
        values = [value for value, _ in (*bound[padding], *bound[end])]
        is_one = len(values) == 2 and (_name(values[0]) == end or _number(values[0]) == _number(values[1]) is not None)
        is_ignored = all(_name(each) == padding or _number(each) == _number(values[1]) is not None for each in ignored)
        if is_one and is_ignored and _is_put_and_sought(facts, end):
            value, file = bound[padding][0]
            yield SharedId(padding, end, facts.span_of(value, file), facts.span_of(losses[0][0], losses[0][1]))
            return


def _trains(facts: TraceIndex) -> bool:
    passes = list(examined_passes(facts))[:1]
    return any(op_name(call) in _LOSSES for each in passes for call in recorded_above(facts, each))


def _are_named(padding: str, end: str) -> bool:
    first, second = set(words_of_last(padding)), set(words_of_last(end))
    return bool(_PADDING & first and _END & second) and not _PADDING & second and end not in _PLACES


def _bound(facts: TraceIndex) -> dict[str, list[tuple[ast.expr, str]]]:
    """Returns what names, attributes and items of the program are set to, each with its file."""
    found: dict[str, list[tuple[ast.expr, str]]] = defaultdict(list)
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            for target, value in _pairs(node):
                if name := _name(target):
                    found[name].append((value, file))
    return found


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            yield target, node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.Dict):
        yield from ((key, value) for key, value in zip(node.keys, node.values, strict=True) if key is not None)


def _name(node: ast.expr) -> str:
    """Returns "eos" for `eos`, `self.eos`, `ids["<eos>"]` and the key `"<eos>"`."""
    if isinstance(node, ast.Subscript):
        node = node.slice
    if isinstance(node, ast.Constant):
        return node.value.strip("<>[]") if isinstance(node.value, str) else ""
    return last_name(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _is_put_and_sought(facts: TraceIndex, end: str) -> bool:
    """Returns whether the program puts an id into sequences, and compares others with it or searches for it."""
    is_put = is_sought = False
    for node in (node for _, tree in facts.trees() for node in ast.walk(tree)):
        if isinstance(node, ast.List):
            is_put |= any(_name(each) == end for each in node.elts)
        elif isinstance(node, ast.Compare):
            is_sought |= any(_name(each) == end for each in (node.left, *node.comparators))
        elif isinstance(node, ast.Call) and any(_name(each) == end for each in node.args):
            is_put |= last_name(node.func) in _FILLING
            is_sought |= last_name(node.func) in _SEARCHING
    return is_put and is_sought

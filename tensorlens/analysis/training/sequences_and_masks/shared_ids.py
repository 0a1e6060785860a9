"""Finds a program whose padding has the id of the end of a sequence, which its loss ignores with the padding.

The program puts the end behind its sequences, and looks for it in what the model gives or has no use for it but as a
target, but no loss has it as one.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.name_words import words_of_last
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.sequences_and_masks.hidden_targets import hidden_where
from tensorlens.analysis.training.sequences_and_masks.last_ids import are_shifted_rows, chooses_no_tokens, is_put_last
from tensorlens.analysis.training.sequences_and_masks.sequence_ends import id_name, is_put_behind, is_sought
from tensorlens.analysis.training.sequences_and_masks.target_masks import HiddenId
from tensorlens.records.model import Span

_PADDING, _END = frozenset(("pad", "padding")), frozenset(("eos", "eot", "end", "stop"))
_PLACES = frozenset(("end", "stop"))  # these lower-case words also name a place in a sequence
_MAX_NAMES = 6  # that lead from one name of an id to another
_Bound = dict[str, list[tuple[ast.expr, str]]]


@dataclass(frozen=True, slots=True)
class SharedId:
    """Two names of one id, and the line that hides it from the loss."""

    padding: str
    end: str
    given: Span
    hidden: Span
    is_loss: bool  # that line is the loss itself, which ignores the id
    is_sought: bool  # False: no sequence is written with the model, and the end is only of use as a target


def shared_ids(facts: TraceIndex) -> Iterator[SharedId]:
    """Yields the first such id, if it is hidden from each loss that a backward pass starts from."""
    bound = _bound(facts)
    for padding, end in ((one, other) for one in bound for other in bound if _are_named(one, other)):
        first, second = _names_of(bound, padding), _names_of(bound, end)
        number, other = (_number_of(bound, names) for names in (first, second))
        if end not in first and (number is None or number != other):
            continue
        ends = {name for name in bound if end in _names_of(bound, name) and not _PADDING & set(words_of_last(name))}
        is_searched = is_put_behind(facts, ends) and is_sought(facts, ends, {*first} - ends)
        if not is_searched and not (is_put_last(facts, ends) and chooses_no_tokens(facts)):
            continue
        names = HiddenId(frozenset({*first, *second, *ends}), other)
        hidden = hidden_where(facts, names, None if is_searched else are_shifted_rows)
        if hidden is not None:
            value, file = bound[padding][0]
            yield SharedId(padding, end, facts.span_of(value, file), *hidden, is_searched)
            return


def _are_named(padding: str, end: str) -> bool:
    first, second = set(words_of_last(padding)), set(words_of_last(end))
    return bool(_PADDING & first and _END & second) and not _PADDING & second and end not in _PLACES


def _names_of(bound: _Bound, name: str) -> list[str]:
    """Returns a name, and those that lead from it to its value, if one value is given for each."""
    names = [name]
    while len(names) < _MAX_NAMES and len(bound[names[-1]]) == 1:
        following = id_name(bound[names[-1]][0][0])
        if following not in bound or following in names:
            break
        names.append(following)
    return names


def _number_of(bound: _Bound, names: list[str]) -> int | None:
    values = bound[names[-1]]
    return _number(values[0][0]) if len(values) == 1 else None


def _bound(facts: TraceIndex) -> _Bound:
    """Returns what names, attributes and items of the program are set to, each with its file.

    Arguments, with their defaults, come after all others. A value that is given twice counts once. Names that count
    are left out.
    """
    found: _Bound = defaultdict(list)
    nodes = [(node, file) for file, tree in facts.trees() for node in ast.walk(tree)]
    for pairs in (_assigned, _given):
        for node, file in nodes:
            for name, value in pairs(node):
                is_new = all(ast.dump(value) != ast.dump(other) for other, _ in found[name]) if name else False
                if is_new and id_name(value) != name and not (isinstance(value, ast.Constant) and value.value is None):
                    found[name].append((value, file))
    counters = {id_name(node.target) for node, _ in nodes if isinstance(node, ast.AugAssign)}
    return {name: values for name, values in found.items() if values and name not in counters}


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from ((id_name(each), value) for each, value in zip(target.elts, node.value.elts, strict=False))
            yield id_name(target), node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield id_name(node.target), node.value
    elif isinstance(node, ast.Dict):
        yield from ((id_name(key), value) for key, value in zip(node.keys, node.values, strict=True) if key is not None)
    elif isinstance(node, ast.FunctionDef) and [last_name(each) for each in node.decorator_list] == ["property"]:
        returned = [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None]
        yield from ((node.name, value) for value in returned)


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Call):
        yield from ((each.arg, each.value) for each in node.keywords if each.arg is not None)
    elif isinstance(node, ast.arguments):
        placed = [*node.posonlyargs, *node.args]
        yield from ((each.arg, value) for each, value in zip(placed[::-1], node.defaults[::-1], strict=False))
        named = zip(node.kwonlyargs, node.kw_defaults, strict=True)
        yield from ((each.arg, value) for each, value in named if value is not None)


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None

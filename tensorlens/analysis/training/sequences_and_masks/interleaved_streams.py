"""Finds sequences of tokens that a reshape cuts into streams item by item, where each stream is to be a piece of text.

`ids.view(-1, batch)` puts consecutive items into one row, as `stack(ids.split(batch))` and `ids.unfold(0, batch,
batch)` do. A recurrent layer that runs along the rows sees each item `batch` places after the one before.
`ids.view(batch, -1).t()` gives each stream consecutive items. So it is with the numbers of one record.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.runs_along_batch import RECURRENT
from tensorlens.analysis.training.sequences_and_masks.consecutive_numbers import is_one_record
from tensorlens.analysis.written_numbers import only_value
from tensorlens.records.model import Call

_RESHAPING = frozenset(("view", "reshape", "unflatten", "unfold"))
_STACKING = frozenset(("stack", "vstack", "row_stack"))
_SPLITTING = frozenset(("split", "chunk", "tensor_split"))
_SAME_PLACES = frozenset("dropout layer_norm contiguous".split())
_SAME_MEMORY = ("contiguous", "clone")
_AS_COLUMN = frozenset(("getitem", "unsqueeze"))
_SAME_ITEMS = frozenset("to long int contiguous clone".split())
_WORDS = frozenset(
    "text texts corpus char chars character characters letter letters word words sentence sentences "
    "novel poem prose verse melody genome dna rna nucleotide nucleotides codon codons".split()
)
_VOICES = frozenset(
    "voice voices part parts channel channels track tracks instrument instruments strand strands frame frames "
    "speaker speakers sensor sensors phase phases".split()
)
_FEW = 8  # voices
_OF_FILES = frozenset(("read_text", "write_text"))  # any file has a text
_CODON, _CODONS = 3, frozenset(("codon", "codons"))  # each place of a codon may have a stream of its own
_TURNS = frozenset("t T mT transpose permute swapaxes movedim".split())
_MAX_CALLS = 8


@dataclass(frozen=True, slots=True)
class InterleavedStreams:
    """A reshape of a sequence to (rows, streams), and the layer that runs along the rows."""

    reshape: Call
    streams: int
    layer: Call


def interleaved_streams(facts: TraceIndex) -> Iterator[InterleavedStreams]:
    """Yields these reshapes, one for each line, if the targets are the rows after the inputs."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        for layer in recorded_above(facts, backward):
            if op_name(layer) not in RECURRENT or not layer.inputs or len(layer.outputs) < 2:
                continue
            rows = _rows(facts, layer)
            reshape = None if rows is None else _reshape(facts, rows, layer)
            if rows is None or reshape is None or reshape.site in reported or not _is_shifted(facts, rows):
                continue
            reported.add(reshape.site)
            yield InterleavedStreams(reshape, facts.tensor(reshape.outputs[0].tensor).shape[1], layer)


def _rows(facts: TraceIndex, layer: Call) -> Call | None:
    """Returns the call that takes the rows of which a layer gets the embeddings or the numbers, if it runs along
    these."""
    shape, states = (facts.tensor(each[-1].tensor).shape for each in (layer.inputs[:1], layer.outputs[:2]))
    if len(shape) != 3 or len(states) != 3 or states[1] != shape[1] or shape[0] == shape[1]:
        return None
    if shape[1] < 2:
        return None  # one stream is the text itself
    number, before = layer.inputs[0].tensor, layer.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) == "embedding":
            taken = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
            is_row = taken is not None and op_name(taken) == "getitem" and len(taken.inputs) == 1
            return taken if is_row and facts.tensor(made.inputs[0].tensor).shape == shape[:2] else None
        sizes = facts.tensor(made.inputs[0].tensor).shape
        if op_name(made) == "getitem" and len(made.inputs) == 1 and sizes[:2] != shape[:2]:
            return made if sizes[1:2] == shape[1:2] else None
        is_column = op_name(made) in _AS_COLUMN and sizes[:2] == shape[:2]
        if op_name(made) not in _SAME_PLACES and not is_column:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _reshape(facts: TraceIndex, rows: Call, layer: Call) -> Call | None:
    """Returns the call that makes (rows, streams) of a sequence with consecutive items in each row."""
    made = facts.creator(rows.inputs[0].tensor)
    while made is not None and made.inputs and (op_name(made) in _SAME_MEMORY or _is_slice(facts, made)):
        made = facts.creator(made.inputs[0].tensor)
    cut = made if made is not None and op_name(made) in _RESHAPING else None
    if made is not None and op_name(made) in _STACKING:
        cut = _split(facts, made)
    span = None if made is None else facts.span(made.site)
    if made is None or cut is None or span is None:
        return None
    (items, *item), shape = facts.tensor(cut.inputs[0].tensor).shape, facts.tensor(made.outputs[0].tensor).shape
    is_of_items = len(item) < 2 and list(shape[2:]) in (item, [*item, 1])
    if len(shape) < 2 or not is_of_items or shape[0] != items // shape[1]:
        return None  # `unfold()` can have windows that overlap
    if (
        _is_of_voices(facts, made)
        or _is_stored_in_turn(facts, cut)
        or (shape[1] == _CODON and _words_in(facts.tree(span.file)) & _CODONS)
    ):
        return None
    is_whole_rows = made is not cut and len(made.inputs) < len(cut.outputs)
    is_text = len(shape) == 2 and not _is_by_few(facts, cut) and _is_one_text(facts, cut, span.file, is_whole_rows)
    return made if is_text or is_one_record(facts, cut, layer) else None


def _is_of_voices(facts: TraceIndex, reshape: Call) -> bool:
    """Returns whether names say that a text has the items of several voices in turn."""
    site = facts.trace.sites[reshape.site]
    caller = None if site.caller is None else facts.trace.sites[site.caller]
    names = {*_sizes_of(facts, reshape), *site.targets, site.function, *(() if caller is None else caller.targets)}
    return any(set(words_of(name)) & _VOICES for name in names)


def _is_by_few(facts: TraceIndex, cut: Call) -> bool:
    """Returns whether a call has a small number written for the streams, as that of the voices of a chorale."""
    node = facts.node_at(cut.site)
    parts = [part for each in node.args for part in ast.walk(each)] if isinstance(node, ast.Call) else []
    numbers = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, int)]
    is_named = any(isinstance(part, ast.Name | ast.Attribute) for part in parts)
    return not is_named and bool(numbers) and 1 < max(numbers) <= _FEW


def _is_slice(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call takes some of the rows, or adds a dimension of one feature."""
    if op_name(call) not in _AS_COLUMN or len(call.inputs) != 1:
        return False
    before, after = (facts.tensor(each.tensor).shape for each in (call.inputs[0], call.outputs[0]))
    return len(before) > 1 and after[1:] in (before[1:], (*before[1:], 1))


def _split(facts: TraceIndex, stack: Call) -> Call | None:
    """Returns the call that splits a sequence into the rows that another call stacks, from the first on."""
    cut = facts.creator(stack.inputs[0].tensor) if stack.inputs else None
    if cut is None or op_name(cut) not in _SPLITTING or len(cut.inputs) != 1:
        return None
    rows, parts = ([access.tensor for access in each] for each in (stack.inputs, cut.outputs))
    shape = facts.tensor(stack.outputs[0].tensor).shape
    is_in_order = rows == parts[: len(rows)] and len(rows) >= len(parts) - 1
    is_of_rows = shape == (len(rows), *facts.tensor(rows[0]).shape) and len(set(shape)) > 1
    return cut if is_in_order and is_of_rows else None


def _is_one_text(facts: TraceIndex, reshape: Call, file: str, is_whole_rows: bool) -> bool:
    """Returns whether the items are those of one text: what several machines have logged in turn, or what was stored
    with time first, has the streams that it is to have.

    The line before cuts it to a whole number of rows, or it leaves out a last part, in a file that has the words of a
    text; or the items are made of something with such a name.
    """
    made = facts.creator(reshape.inputs[0].tensor)
    while made is not None and op_name(made) in _SAME_ITEMS and made.inputs:
        made = facts.creator(made.inputs[0].tensor)
    span = None if made is None else facts.span(made.site)
    node = None if span is None else facts.names.syntax.node(span)
    if made is None or node is None or len(made.outputs) != 1 or len(facts.tensor(made.outputs[0].tensor).shape) != 1:
        return False
    if op_name(made) in ("tensor", "as_tensor"):
        return isinstance(node, ast.Call) and bool(node.args) and _is_of_one_text(node.args[0])
    is_cut = is_whole_rows or _is_cut(facts.tree(file), made, node)
    return is_cut and bool(_words_in(facts.tree(file), _sizes_of(facts, reshape)) & _WORDS)


def _is_stored_in_turn(facts: TraceIndex, reshape: Call) -> bool:
    """Returns whether a sequence was made of several by a transpose, which put their items in turn."""
    made = facts.creator(reshape.inputs[0].tensor)
    for _ in range(_MAX_CALLS):
        if made is None:
            return False
        if not made.inputs:
            break
        if len(facts.tensor(made.inputs[0].tensor).shape) > 1:
            source = facts.creator(made.inputs[0].tensor)
            return source is not None and op_name(source) in _TURNS
        made = facts.creator(made.inputs[0].tensor)
    node = None if made is None else facts.node_at(made.site)
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    value = only_value(facts, given.id) if isinstance(given, ast.Name) else given
    parts = ast.walk(value) if value is not None else ()
    return any(isinstance(each, ast.Attribute) and each.attr in _TURNS for each in parts)


def _sizes_of(facts: TraceIndex, reshape: Call) -> frozenset[str]:
    """Returns the names that the source gives a call as sizes: `n_words` of a record is no word of a text."""
    node = facts.node_at(reshape.site)
    given = node.args if isinstance(node, ast.Call) else ()
    return frozenset(part.id for each in given for part in ast.walk(each) if isinstance(part, ast.Name))


def _is_of_one_text(items: ast.expr) -> bool:
    """Returns whether items are made of one thing that is named as a text: `[number[c] for c in text]`. The lines of a
    text are records."""
    loops = items.generators if isinstance(items, ast.ListComp | ast.GeneratorExp) else []
    words = _words_in(loops[0].iter if loops else items)
    return len(loops) < 2 and bool(words & _WORDS) and "splitlines" not in words


def _is_cut(tree: ast.Module, cut: Call, node: ast.AST) -> bool:
    """Returns whether a line takes as many first items as make whole rows: `ids[: n // batch * batch]`."""
    size = None
    if op_name(cut) == "getitem" and isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        lower = node.slice.lower
        size = node.slice.upper if lower is None or ast.unparse(lower) == "0" else None
    elif op_name(cut) == "narrow" and isinstance(node, ast.Call) and len(node.args) > 2:
        size = node.args[-1] if ast.unparse(node.args[-2]) == "0" else None
    sizes = [] if size is None else [size]
    if isinstance(size, ast.Name):
        assigned = (each for each in ast.walk(tree) if isinstance(each, ast.Assign))
        sizes += [each.value for each in assigned if ast.unparse(each.targets[0]) == size.id]
    parts = (part for each in sizes for part in ast.walk(each))
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult | ast.Mod) for part in parts)


def _words_in(tree: ast.AST, without: frozenset[str] = frozenset()) -> set[str]:
    """Returns the words of the names in a part of a file, without some of them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name"):
            name = getattr(node, field, None)
            found |= set(words_of(name)) if isinstance(name, str) and name not in _OF_FILES | without else set()
    return found


def _is_shifted(facts: TraceIndex, rows: Call) -> bool:
    """Returns whether the script takes the rows one after those of the inputs as well: `[a + 1 : b + 1]`, or `[1:]`
    where the inputs are `[:-1]`."""
    span, node = facts.span(rows.site), facts.node_at(rows.site)
    index = _first_slice(node)
    if span is None or index is None or not isinstance(node, ast.Subscript):
        return False
    lower = None if index.lower is None else ast.unparse(index.lower)
    wanted = {"1"} if lower is None else {f"{lower} + 1", f"1 + {lower}"}
    if lower is None and (index.upper is None or ast.unparse(index.upper) != "-1"):
        return False
    of_one = None if lower is not None else ast.unparse(node.value)
    for each in ast.walk(facts.tree(span.file)):
        part = _first_slice(each)
        if isinstance(each, ast.Subscript) and part is not None and part.lower is not None:
            if ast.unparse(part.lower) in wanted and of_one in (None, ast.unparse(each.value)):
                return True
    return False


def _first_slice(node: ast.AST | None) -> ast.Slice | None:
    """Returns the slice of the first dimension."""
    index = node.slice if isinstance(node, ast.Subscript) else None
    index = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
    return index if isinstance(index, ast.Slice) else None

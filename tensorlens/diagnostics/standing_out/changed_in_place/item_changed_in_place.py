"""Names datasets that give out the array that they keep, while a line or a transform writes into it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import method_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_in_place.item_writes import ItemCode
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training_arrays import GivenArray

_FEWEST = 3  # items that are other ones than before
_FEWEST_SHARE = 0.3
_MOST_LABELS = 4


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds items that a `__getitem__` writes into, and that have other values when they are read again."""
    facts = training.facts
    arrays = [each for each in facts.trace.inspection.given_arrays if each.number == training.measured.number]
    spans = {each: span for each in arrays if (span := facts.span(each.site)) is not None}
    for file in {span.file for span in spans.values()} if is_complete(facts.trace) else ():
        tree = facts.tree(file)
        classes = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)]
        readers = [(each, method) for each in classes if (method := method_of(each, "__getitem__")) is not None]
        for holder, method in readers:
            sites = range(method.lineno, (method.end_lineno or method.lineno) + 1)
            loaded = [each for each in spans if len(readers) == 1 and _is_loaded(facts, each)]
            own = [each for each, span in spans.items() if span.file == file and span.line in sites]
            counts = sum(each.changed for each in own + loaded), sum(each.given for each in own + loaded)
            if counts[0] >= max(_FEWEST, _FEWEST_SHARE * counts[1]):
                yield from _sentences(facts, file, ItemCode(tree, holder), method, counts, bool(loaded))


def _is_loaded(facts: TraceIndex, array: GivenArray) -> bool:
    """Returns whether a loader of PyTorch makes the tensors on an array."""
    return array.site is not None and "DataLoaderIter" in (facts.trace.sites[array.site].through or "")


def _sentences(
    facts: TraceIndex, file: str, code: ItemCode, method: ast.FunctionDef, counts: tuple[int, int], is_loaded: bool
) -> Iterator[StandingOut]:
    for attribute, reader in code.readers(method).items():
        writes = code.item_writes(method, attribute)
        adding = [each for each in writes if each.adds_up]
        is_refilled = any(each.refills for each in writes) or code.is_written_elsewhere(attribute, method)
        if is_refilled or not adding or not code.gives(method, attribute, is_loaded):
            continue
        written = " ".join(facts.code_of(adding[0].node, file).split())
        yield stands_out(
            f"`{written}` writes into an item of `self.{attribute}`, which `__getitem__` gives out without a copy: "
            f"{counts[0]:,} of {counts[1]:,} times, an item that is read again has other values than before",
            *[Label("modified_here", facts.span_of(each.node, file), "changed here") for each in adding[:_MOST_LABELS]],
            Label("value_made_here", facts.span_of(reader, file), "the kept item, not a copy of it"),
        )

"""Finds the cause of `state-dict-aliases-parameters`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import groupby

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import module_name
from tensorlens.diagnostics.shared.wording import finding, fix, source_text
from tensorlens.records.model import Call
from tensorlens.records.report import Diagnostic, Edit, Label
from tensorlens.records.source import text_of

CODE = "state-dict-aliases-parameters"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    if not any(site.through in ("Module.load_state_dict", "Module.state_dict") for site in facts.trace.sites):
        return
    reported: set[tuple[int, int]] = set()
    for site, group in groupby(facts.calls, key=lambda call: call.site):
        if facts.trace.sites[site].through != "Module.load_state_dict":
            continue
        kept = _kept(facts, [call for call in group if call.op == "Tensor.copy_"])
        changed = None if kept is None else _last_write(facts, kept[1].inputs[0].tensor, *kept)
        if changed is not None and _is_by_item(facts, changed):
            continue  # a change of the dict is meant for the module that loads it
        if kept is not None and changed is not None and (site, kept[0].site) not in reported:
            reported.add((site, kept[0].site))
            yield _report(
                facts,
                f"`{source_text(facts, kept[1].site)}` restored nothing: it copied each tensor onto itself",
                kept[0],
                facts.label("modified_here", changed.site, "changes both"),
                facts.label("needed_here", kept[1].site, "loads what is there already"),
            )
    yield from _snapshots_compared(facts)


def _snapshots_compared(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Reports lines that compute with the tensors of two state dicts of one model, which had changed in between."""
    aliases: dict[int, Call] = {}
    reported: set[int] = set()
    for call in facts.calls:
        if facts.trace.sites[call.site].through == "Module.state_dict":
            aliases.update((access.tensor, call) for access in call.outputs)
        elif len(call.inputs) == 2 and call.site not in reported and {a.tensor for a in call.inputs} <= aliases.keys():
            first, last = sorted((aliases[access.tensor] for access in call.inputs), key=lambda made: made.index)
            number = first.outputs[0].tensor
            changed = _last_write(facts, number, first, last) if _is_one_memory(facts, call) else None
            if changed is not None:
                reported.add(call.site)
                yield _report(
                    facts,
                    f"`{source_text(facts, call.site)}` computes with one tensor twice: the first snapshot has the new "
                    "values too",
                    first,
                    facts.label("observed_here", changed.site, "changes both"),
                    facts.label("needed_here", call.site, "finds the same values in both"),
                )


def _is_one_memory(facts: TraceIndex, call: Call) -> bool:
    one, other = (access.tensor for access in call.inputs)
    same = facts.storage_of(one, call.index) == facts.storage_of(other, call.index)
    return same and one != other and facts.tensor(one).shape == facts.tensor(other).shape


def _last_write(facts: TraceIndex, number: int, first: Call, last: Call) -> Call | None:
    """Returns the last write, between two calls, to the memory that a tensor has at the second one."""
    memory = facts.storage_of(number, last.index)
    between = (call for call in reversed(facts.calls) if first.index < call.index < last.index and call.writes)
    return next((c for c in between if any(facts.storage_of(w.tensor, c.index) == memory for w in c.writes)), None)


def _is_by_item(facts: TraceIndex, change: Call) -> bool:
    """Returns whether a call changes a tensor that `state_dict()` has returned, and not the parameter itself."""
    made = [facts.creator(write.tensor) for write in change.writes]
    return all(each is not None and facts.trace.sites[each.site].through == "Module.state_dict" for each in made)


def _kept(facts: TraceIndex, copies: list[Call]) -> tuple[Call, Call] | None:
    """Returns the call of `state_dict()` that gave the first of the loaded tensors, and the copy that loads it.

    None unless every tensor was copied onto itself: a state dict of which a part was replaced is loaded for that part.
    """
    made: list[Call] = []
    for copy in copies:
        target, source = (access.tensor for access in copy.inputs[:2])
        alias = facts.creator(source)
        if facts.storage_of(target, copy.index) != facts.storage_of(source, copy.index) or alias is None:
            return None
        if facts.trace.sites[alias.site].through != "Module.state_dict":
            return None
        made.append(alias)
    return (made[0], copies[0]) if made else None


def _report(facts: TraceIndex, title: str, kept: Call, changed: Label | None, used: Label | None) -> Diagnostic:
    edit = _copied(facts, kept)
    return finding(
        CODE,
        "warning",
        title,
        "`state_dict()` returns the model's own tensors, not copies: they changed together with the model",
        [facts.label("shared_here", kept.site, "the same memory as the parameters"), changed, used],
        fixes=(fix("keep a copy of each tensor", *(() if edit is None else (edit,)), place=facts.span(kept.site)),),
        evidence={"kept": source_text(facts, kept.site)},
    )


def _copied(facts: TraceIndex, alias: Call) -> Edit | None:
    """Copies the state dict where it is taken: `copy.deepcopy(model.state_dict())`."""
    span = facts.trace.sites[alias.site].span
    node = facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(".state_dict"):
        return None
    text, copy = text_of(facts.trace.sources[span.file], span), module_name(facts, span.file, "copy")
    if copy is not None:
        return Edit(span, f"{copy}.deepcopy({text})")
    return Edit(span, f"{{name: value.clone() for name, value in {text}.items()}}")

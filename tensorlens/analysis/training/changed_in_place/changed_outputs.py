"""Finds outputs of modules that a forward hook keeps without a copy, and that the next layer changes in place.

A line that reads what the hook has kept then reads the changed values.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

from tensorlens.analysis.code_around import function_around, is_inside, scope_around, statement_around
from tensorlens.analysis.plain_values import takes_shape_only
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_arguments import ACTIVATIONS, given_to
from tensorlens.analysis.training.changed_in_place.hook_keeps import (
    FORWARD_HOOK,
    FORWARD_PRE_HOOK,
    KeptOutput,
    Scope,
    gives_on,
    is_same,
    keeping,
    kept_outputs,
    kept_views,
    own_nodes,
    same_names,
)
from tensorlens.analysis.training.changed_in_place.model_keeps import ModelCode
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.hook_functions import hook_sites
from tensorlens.analysis.training.timeline import GRAD_READ
from tensorlens.records.model import Call

_CHANGING = ACTIVATIONS | {"add"}  # `out += shortcut`, too
_COMPARISONS = frozenset("le lt ge gt".split())  # with zero, the same before and after relu()
_NO_VALUES = frozenset("register_hook retain_grad requires_grad size dim numel".split())  # ops that read no values


@dataclass(frozen=True, slots=True)
class ChangedOutput:
    """An output that a hook keeps, the call that changes it in place, and a later one that reads it."""

    kept: KeptOutput
    change: Call
    reader: Call


def changed_outputs(facts: TraceIndex) -> Iterator[ChangedOutput]:
    """Yields these outputs, one for each line of a hook that keeps some."""
    if not any(each.kind == FORWARD_HOOK for each in facts.trace.callbacks.registrations):
        return
    seen, hooks = set[object](), hook_sites(facts, FORWARD_HOOK, FORWARD_PRE_HOOK)
    for each in (*_views(facts, hooks), *_whole(facts, hooks)):
        if each.kept.span not in seen:
            seen.add(each.kept.span)
            yield each


def _views(facts: TraceIndex, hooks: set[int]) -> Iterator[ChangedOutput]:
    """Finds views, as the result of `detach()`, that a hook makes of the output, and that are read after a change."""
    views = defaultdict[int | None, dict[int, tuple[KeptOutput, Call]]](dict)  # of each storage
    kept_at: dict[int, KeptOutput | None] = {}
    changes: dict[int, tuple[KeptOutput, Call]] = {}  # view -> the first change after it
    keeps = list(kept_views(facts)) if hooks else []
    for call in facts.calls if keeps else ():
        if call.site in hooks and call.inputs and call.outputs:
            if call.site not in kept_at:
                kept_at[call.site] = _kept_at(facts, call, keeps)
            kept, view = kept_at[call.site], call.outputs[0].tensor
            memory = facts.storage_of(view, call.index)
            is_view = memory == facts.storage_of(call.inputs[0].tensor, call.index) and view != call.inputs[0].tensor
            if kept is not None and memory is not None and is_view:
                views[memory].setdefault(view, (kept, call))
        elif _changes(call):
            created = facts.tensor(call.writes[0].tensor).created_by
            memory = facts.storage_of(call.writes[0].tensor, call.index)
            for view, (kept, made) in views[memory].items() if memory in views else ():
                if created is not None and created < made.index:  # the output itself, and not what is kept
                    changes.setdefault(view, (kept, call))
        for view in [access.tensor for access in call.inputs if access.tensor in changes] if changes else ():
            if reads_values(facts, call, hooks):
                yield ChangedOutput(*changes[view], call)


def _kept_at(facts: TraceIndex, call: Call, keeps: Iterable[KeptOutput]) -> KeptOutput | None:
    """Returns the hook that makes a view of its output by a call: the part that keeps it, if the call is in it."""
    span, node = facts.span(call.site), facts.node_at(call.site)
    found = None
    for each in keeps:
        if span is None or not is_inside(span, facts.span_of(each.function, each.span.file)):
            continue
        if is_same(node, same_names(each.function, {each.output}), views=True):
            if found is not None and found.span == each.span and found.of != each.of:
                found = replace(found, of="")  # one function is the hook of several modules
            elif found is None or is_inside(span, each.span):
                found = each
    return found


def _changes(call: Call) -> bool:
    return bool(call.writes) and not call.within and op_name(call) in _CHANGING


def reads_values(facts: TraceIndex, call: Call, hooks: set[int]) -> bool:
    """Returns whether a call outside hooks may read the values of its inputs."""
    if call.within or call.writes or takes_shape_only(call) or op_name(call) in _NO_VALUES or call.op == GRAD_READ:
        return False
    if op_name(call) == "relu" or op_name(call) in _COMPARISONS:
        return False
    return not call.op.endswith("__set__") and hooks.isdisjoint(facts.call_chain(call.site))


def _whole(facts: TraceIndex, hooks: set[int]) -> Iterator[ChangedOutput]:
    """Finds outputs that are kept themselves. The trace has no calls of hooks: so it is known by its op, by the layer
    that reads it next, and by the line outside the model that reads it, while nothing else keeps it."""
    keeps = {each.op: each for each in reversed(kept_outputs(facts))}
    changed = dict[int, tuple[Call, Call]]()  # tensor -> the call that made it, and the first that changed it
    readers, seen = defaultdict[int, list[Call]](list), set[tuple[int, ...]]()
    views = dict[int, int]()  # of what was changed
    for call in facts.calls if keeps else ():
        for number in {views.get(a.tensor, a.tensor) for a in call.inputs} & changed.keys() if changed else ():
            if reads_values(facts, call, hooks):
                readers[number].append(call)
                memory = facts.storage_of(number, call.index)
                same = [a.tensor for a in call.outputs if facts.storage_of(a.tensor, call.index) == memory]
                views |= dict.fromkeys(same, number)
        if _changes(call) and call.writes[0].tensor not in changed:
            made = facts.creator(call.writes[0].tensor)
            if made is not None and op_name(made) in keeps and not hooks & {made.site, call.site}:
                changed[call.writes[0].tensor] = made, call
    model = ModelCode(facts, {id(each.function) for each in keeps.values()}) if readers else None
    for number, calls in readers.items():
        made, change = changed[number]
        sites = (made.site, change.site, *(each.site for each in calls))
        if sites in seen:
            continue
        seen.add(sites)
        reader = None if model is None else _outside(facts, model, number, (made, change, calls))
        if reader is not None:
            yield ChangedOutput(keeps[op_name(made)], change, reader)


def _outside(facts: TraceIndex, model: ModelCode, number: int, known: tuple[Call, Call, list[Call]]) -> Call | None:
    """Returns the first reader of a tensor that is outside the call that made, changed and read it."""
    made, change, readers = known
    outer = _outermost_first(facts, made)
    for place, reader in enumerate(readers):
        if all(access.tensor != number for access in reader.inputs):
            continue
        chain = _outermost_first(facts, reader)
        depth = next((n for n, (one, other) in enumerate(zip(outer, chain, strict=False)) if one != other), None)
        if depth is None or _outermost_first(facts, change)[: depth + 1] != outer[: depth + 1]:
            continue
        inner = [each for each in readers[:place] if _outermost_first(facts, each)[: depth + 1] == outer[: depth + 1]]
        memory = facts.storage_of(number, reader.index)
        is_read = any(
            each.outputs and all(facts.storage_of(out.tensor, each.index) != memory for out in each.outputs)
            for each in inner
        )
        sites = {site for each in (made, change, *inner) for site in _outermost_first(facts, each)[depth + 1 :]}
        scopes = {facts.scope(site) for site in sites}
        if not is_read or any(facts.scope(site) in scopes for site in chain[depth:]):
            return None
        readings = {site for each in inner for site in _outermost_first(facts, each)[depth + 1 :]}
        is_kept = model.keeps(sites) or any(_is_returned(facts, site) for site in readings)
        return None if is_kept or _is_passed_on(facts, number, reader, chain[depth:][::-1]) else reader
    return None


def _outermost_first(facts: TraceIndex, call: Call) -> list[int]:
    return facts.call_chain(call.site)[::-1]


def _is_returned(facts: TraceIndex, site: int) -> bool:
    """Returns whether a function returns what one of its expressions reads, and no other value by the same name."""
    span, node = facts.span(site), facts.node_at(site)
    function = None if span is None else function_around(facts, span.file, span.line)
    if span is None or node is None or function is None:
        return False
    read = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    statement = statement_around(facts, span)
    if isinstance(statement, ast.Assign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        read -= {target.id for target in targets if isinstance(target, ast.Name)}
    returned = (each.value for each in ast.walk(function) if isinstance(each, ast.Return) and each.value is not None)
    return any(read & same_names(function, _roots(value)) for value in returned if not isinstance(value, ast.Call))


def _is_passed_on(facts: TraceIndex, number: int, reader: Call, sites: list[int]) -> bool:
    """Returns whether a function has given what a call reads to another function, too, as a later part of the model:
    then the hook may not be what has kept it. `sites`: of the reader and of its callers, the innermost first."""
    operands, names = facts.names.operands(reader), set[str]()
    place = next((place for place, access in enumerate(reader.inputs) if access.tensor == number), -1)
    if (name := operands[place] if 0 <= place < len(operands) else None) is not None:
        names = _roots(ast.parse(name, mode="eval").body)
    own = [facts.node_at(site) for site in sites]
    for site, outer in zip_longest(sites, sites[1:]):
        span, node = facts.span(site), facts.node_at(site)
        if span is None or node is None:
            return True
        scope = scope_around(facts, span.file, span.line)
        names = names or _roots(node)
        if _gives_on(scope, names, own, span.end_line) or _keeps_passed(scope, names):
            return True
        after = None if outer is None else facts.span(outer)
        if after is None or scope_around(facts, after.file, after.line) is scope:
            continue
        call, given = facts.node_at(outer), set[str]()
        if isinstance(call, ast.Call) and not isinstance(scope, ast.Module):
            arguments = [given_to(scope, call, each) for each in names]
            given = {root for each in arguments if each is not None for root in _roots(each)}
        if not given:
            return False  # it comes from elsewhere, as from the hook
        names = given
    return False


def _roots(node: ast.AST) -> set[str]:
    """Returns the variables that an expression has values of, without the arguments of calls inside it."""
    inner = list[ast.AST]([*node.args, node.func] if isinstance(node, ast.Call) else [node])
    found = set[str]()
    while inner:
        part = inner.pop()
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif not isinstance(part, ast.Call):
            inner += [part.value] if isinstance(part, ast.Subscript | ast.Attribute) else ast.iter_child_nodes(part)
    return found


def _gives_on(scope: Scope, names: set[str], own: list[ast.AST | None], last: int) -> bool:
    """Returns whether a call up to a line gives on a variable, other than those that lead to the reader."""
    calls = (node for node in own_nodes(scope) if isinstance(node, ast.Call) and node.lineno <= last)
    return any(gives_on(node, names) and node not in own for node in calls)


def _keeps_passed(scope: Scope, names: set[str]) -> bool:
    """Returns whether a function itself keeps results that it also gives to other functions, as by `outs.append(h)`
    between `h = first(x)` and `y = second(h)`, or whether some variables have such a result."""
    nodes = list(own_nodes(scope))
    made = {target.id for node in nodes if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for target in node.targets if isinstance(target, ast.Name)}  # fmt: skip
    giving = [node for node in nodes if gives_on(node, made)]
    passed = same_names(scope, {name for name in made if any(gives_on(node, {name}) for node in giving)})
    loops = (node.iter for node in nodes if isinstance(node, ast.For | ast.comprehension))
    is_kept = any(True for _ in keeping(scope, passed, views=True))
    return is_kept or bool(names & passed) or any(is_same(each, passed, views=True) for each in loops)

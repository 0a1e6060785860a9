"""Finds tensors that a module keeps as plain attributes, and that `load_state_dict()` does not give to another one.

A module saves its parameters and buffers. Statistics that `forward` assigns to `self.mean` are neither, if the
constructor has made `self.mean` without `register_buffer()`. A permutation that the constructor draws is another one in
each object.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.checkpoints_and_averages.statistic_changes import is_reset, is_statistic
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.module_loads import module_loads
from tensorlens.analysis.training.order_free_uses import is_order_of_a_sum
from tensorlens.analysis.training.outside_draws import is_drawn_outside, is_permuted_outside
from tensorlens.analysis.training.repeated_seeds import DRAWS
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.records.model import Call
from tensorlens.records.training_values import LoadedAverages

_CONSTRUCTOR = "__init__"
_OWN_STATES = frozenset(("get_extra_state", "set_extra_state", "_save_to_state_dict", "state_dict"))
_ORDERS = frozenset(("argsort", "randperm"))
_PROJECTIONS = frozenset(("matmul", "rmatmul", "mm", "linear"))
_TAKEN = frozenset("item tolist numpy float clone detach to cpu repr format".split())
_COMPREHENSIONS = (".<locals>.<listcomp>", ".<locals>.<dictcomp>", ".<locals>.<genexpr>")
MIN_CHANGES = 3
_MAX_CALLS = 60


@dataclass(frozen=True, slots=True)
class UnsavedAttribute:
    """An attribute that a loaded module uses as its constructor has made it."""

    name: str  # "self.mean"
    made: Call  # in the constructor of the loaded module
    changed: Call  # the last call that set the attribute before: in another method, or for another object
    load: Call
    used: Call  # after the load
    is_buffer: bool = False  # with `persistent=False`


def unsaved_attributes(facts: TraceIndex) -> Iterator[UnsavedAttribute]:
    """Yields these attributes, if the line that uses them has used changed values before, and nothing changes them
    between the load and this use."""
    loads = list(module_loads(facts))
    for key, constructed, every in set_attributes(facts) if loads else ():
        last = constructed[-1]
        changes = [each for each in every if each.index < last.index]
        if len(constructed) < 2 or len(changes) < MIN_CHANGES or last.inputs:
            continue
        if len(changes) < len(every) and resume_after(facts, last) is None:
            continue  # another training, which may begin anew
        load = _load_of(facts, last, loads)
        if load is None or is_reset(facts, every) or not is_statistic(facts, changes):
            continue
        used = _use(facts, last, load, changes) or _first_use(facts, key[0], last, load, changes)
        if used is not None and not any(last.index < each.index < used.index for each in every):
            yield UnsavedAttribute(key[1], last, changes[-1], load, used, is_registered(facts, last))


def drawn_attributes(facts: TraceIndex) -> Iterator[UnsavedAttribute]:
    """Yields the attributes that the constructor of a module draws, if the line that uses that of the loaded object has
    used that of another one in a training before.

    A program that sets the seed again may draw the same, and one that trains the loaded object may want another one,
    but for a permutation and a projection of what is loaded in the place of the object that was trained.
    """
    loads = list(module_loads(facts))
    if not loads or not facts.backwards:
        return
    modules = _modules(facts)
    for key, constructed, changes in set_attributes(facts):
        last = constructed[-1]
        load = _load_of(facts, last, loads)
        if load is None or changes or len(constructed) < 2 or key[0].split(".")[-1] not in modules:
            continue
        if not all(is_drawn(facts, each) for each in constructed):
            continue
        others = [each for each in constructed if each.index < facts.backwards[0].index]
        seeds = facts.trace.inspection.seeds
        if not others or last in others or any(others[0].index < seed.index <= last.index for seed in seeds):
            continue
        used = _use(facts, last, load, others)
        is_trained_on = facts.backwards[-1].index > load.index
        if used is not None and is_order_of_a_sum(facts, used):
            continue
        if used is not None and (not is_trained_on or _is_resumed(facts, last, (load, used), others)):
            yield UnsavedAttribute(key[1], last, others[-1], load, used)


def _is_resumed(facts: TraceIndex, made: Call, place: tuple[Call, Call], others: list[Call]) -> bool:
    """Returns whether the loaded object goes on with the training of another one, which nothing uses any more, and
    orders or projects by what the constructor draws.

    A file with the parameters of the other one was saved in its training.
    """
    load, used = place
    first, own = facts.backwards[0].index, {access.tensor for each in others for access in each.outputs}
    is_order = (op_name(made) in _ORDERS or is_permuted_outside(facts, made)) and used.op == "Tensor.__getitem__"
    is_projection = op_name(used) in _PROJECTIONS and len(facts.tensor(made.outputs[0].tensor).shape) > 1
    is_saved = any(first < saved.index < load.index for saved in facts.trace.inspection.saved_files)
    later = facts.calls_between(load.index)
    is_gone = not any(access.tensor in own for call in later for access in call.inputs)
    return (is_order or is_projection) and is_saved and is_gone and is_complete(facts.trace)


def _modules(facts: TraceIndex) -> set[str]:
    """Returns the names of the program's classes that are modules, by their bases."""
    classes = [node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = {node.name: {ast.unparse(each).rpartition(".")[2] for each in node.bases} for node in classes}
    found = set[str]()
    for _ in bases:  # each round reaches one class further down
        found |= {name for name, each in bases.items() if "Module" in each or each & found}
    return found


def resume_after(facts: TraceIndex, made: Call) -> LoadedAverages | None:
    """Returns the load of averages after a call, if passes ran before it and run after it, and none between."""
    loads = [each for each in facts.trace.inspection.loaded_averages if each.index > made.index]
    passes = [each.index for each in facts.backwards]
    if not loads or not passes or passes[0] > made.index or passes[-1] < loads[0].index:
        return None
    return None if any(made.index < each < loads[0].index for each in passes) else loads[0]


def set_attributes(facts: TraceIndex) -> Iterator[tuple[tuple[str, str], list[Call], list[Call]]]:
    """Yields (class, attribute), the calls in constructors that set it, and those elsewhere that set it or change what
    a constructor has made."""
    if _saves_itself(facts):
        return
    made, changed = defaultdict[tuple[str, str], list[Call]](list), defaultdict[tuple[str, str], list[Call]](list)
    keys: dict[int, tuple[str, str]] = {}  # of the tensors that constructors make
    for call in facts.calls:
        is_constructor = _function(facts, call.site).endswith("." + _CONSTRUCTOR)
        for key in _attributes(facts, call):
            (made if is_constructor else changed)[key].append(call)
            keys.update({access.tensor: key for access in call.outputs if is_constructor})
        for write in call.writes if not is_constructor else ():
            if write.tensor in keys and call.outputs:
                changed[keys[write.tensor]].append(call)
    for key, constructed in made.items():
        yield key, constructed, changed[key]


def is_drawn(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a value is computed from random numbers, none of which a generator of its own gives."""
    above = [made for _, made in islice(ancestry(facts, call.outputs[0].tensor, call.index + 1), _MAX_CALLS)]
    if any(is_drawn_outside(facts, made) for made in above):
        return True
    spans = [facts.span(made.site) for made in above if op_name(made) in DRAWS]
    is_own = all(span is not None and "generator" not in facts.names.syntax.text(span, 1_000) for span in spans)
    return bool(spans) and is_own


def _load_of(facts: TraceIndex, made: Call, loads: list[Call]) -> Call | None:
    """Returns a load of the first state dict that is loaded after a call, into the object that the call belongs to."""
    later = [each for each in loads if each.index > made.index]
    return next((each for each in later if each.site == later[0].site and _is_of_one_object(facts, made, each)), None)


def _is_of_one_object(facts: TraceIndex, made: Call, load: Call) -> bool:
    """Returns whether one line makes the object that has an attribute and a tensor that a load writes to, and no pass
    runs between the two."""
    loaded = facts.creator(load.inputs[0].tensor)
    if loaded is None or not facts.same_line(_made_at(facts, made), _made_at(facts, loaded)):
        return False
    first, last = sorted((made.index, loaded.index))
    return not any(first < backward.index < last for backward in facts.backwards)


def _made_at(facts: TraceIndex, call: Call) -> int:
    """Returns the line that makes the object whose constructor makes a call."""
    chain = facts.call_chain(call.site)
    return next((site for site in chain if not _function(facts, site).endswith("." + _CONSTRUCTOR)), call.site)


def _function(facts: TraceIndex, site: int) -> str:
    """Returns the function of a site; of a comprehension, the one around it."""
    function = facts.trace.sites[site].function
    while function.endswith(_COMPREHENSIONS):
        function = function.rpartition(".<locals>.")[0]
    return function


def _saves_itself(facts: TraceIndex) -> bool:
    """Returns whether a class of the program decides itself what is saved."""
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return any(isinstance(node, ast.FunctionDef) and node.name in _OWN_STATES for node in nodes)


def _attributes(facts: TraceIndex, call: Call) -> Iterator[tuple[str, str]]:
    """Yields the attributes of `self` that a call's result is stored to, each with the class whose method does so."""
    site = facts.trace.sites[call.site]
    owner, _, method = _function(facts, call.site).rpartition(".")
    is_plain = len(call.outputs) == 1 and facts.tensor(call.outputs[0].tensor).type == "Tensor"
    if owner and method and is_plain and not call.within and not site.through:
        targets = site.targets if site.targets else _lists(facts, call.site)
        yield from ((owner, target) for target in targets if target.startswith("self.") and "[" not in target)


def _lists(facts: TraceIndex, site: int) -> tuple[str, ...]:
    """Returns the attribute whose list an expression is an item of: `self.orders = [randperm(4) for _ in range(3)]`, or
    `self.orders.append(randperm(4))`."""
    span = facts.span(site)
    node = None if span is None else facts.names.syntax.node(span)
    if span is None or not isinstance(node, ast.expr):
        return ()
    statement = statement_around(facts, span)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        value = statement.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("list", "tuple"):
            value = value.args[0] if value.args else value
        items = [value.elt] if isinstance(value, ast.ListComp | ast.GeneratorExp) else getattr(value, "elts", [])
        items = [value.value] if isinstance(value, ast.DictComp) else items
        return (ast.unparse(statement.targets[0]),) if any(item is node for item in items) else ()
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and _is_unsaved_buffer(call) and call.args[1] is node:
        return (f"self.{ast.literal_eval(call.args[0])}",)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
        return ()
    return (ast.unparse(call.func.value),) if any(each is node for each in call.args) else ()


def _is_unsaved_buffer(call: ast.Call) -> bool:
    """Returns whether a call is `self.register_buffer("mean", ..., persistent=False)`."""
    options = {each.arg: each.value for each in call.keywords}
    given = call.args[2] if len(call.args) > 2 else options.get("persistent")
    is_named = len(call.args) > 1 and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    is_own = ast.unparse(call.func) == "self.register_buffer"
    return is_named and is_own and isinstance(given, ast.Constant) and given.value is False


def is_registered(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a constructor makes a value for a buffer with `persistent=False`."""
    span = facts.span(made.site)
    statement = None if span is None else statement_around(facts, span)
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and _is_unsaved_buffer(call)


def _use(facts: TraceIndex, made: Call, load: Call, changes: list[Call]) -> Call | None:
    """Returns the first call after a load that uses what the constructor has made, at a line that used changed values
    before the load, with gradients on or in the same mode.

    None if anything writes to it, or if that line only updates it without a graph.
    """
    number, own = made.outputs[0].tensor, {access.tensor for call in changes for access in call.outputs}
    before = {
        (call.site, call.mode)
        for call in facts.calls
        if call.index < load.index and own & {access.tensor for access in call.inputs}
    }
    lines = [call.site for call in changes[-1:]]
    for call in facts.calls_between(made.index + 1):
        if any(write.tensor == number for write in call.writes):
            return None
        inputs = {access.tensor for access in call.inputs}
        if call.index > load.index and number in inputs:
            is_change = call.mode != "grad" and any(facts.same_line(call.site, line) for line in lines)
            is_used = not {(call.site, "grad"), (call.site, call.mode)}.isdisjoint(before)
            return call if is_used and not own & inputs and not is_change else None
    return None


def _first_use(facts: TraceIndex, owner: str, made: Call, load: Call, changes: list[Call]) -> Call | None:
    """Returns the first call that uses the attribute of any object, if it is one of the loaded object, in a method of
    its class: no line has used the statistics of the object that was trained, but to update them."""
    number, own = made.outputs[0].tensor, {access.tensor for call in changes for access in call.outputs}
    lines = {(span.file, span.line) for call in changes if (span := facts.span(call.site)) is not None}
    for call in facts.calls_between(0) if is_complete(facts.trace) else ():
        inputs, span = {access.tensor for access in call.inputs}, facts.span(call.site)
        is_update = span is not None and (span.file, span.line) in lines
        if number not in inputs and (is_update or own.isdisjoint(inputs)):
            continue
        is_kept = any(write.tensor == number for write in call.writes) or is_update or op_name(call) in _TAKEN
        is_method = facts.trace.sites[call.site].function.rpartition(".")[0] == owner
        return call if call.index > load.index and number in inputs and is_method and not is_kept else None
    return None

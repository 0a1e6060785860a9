"""Names lines that write one tensor from another, or compare two, where both share their memory."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.module_loads import module_loads
from tensorlens.analysis.training.one_memory import Operand, are_two_things, is_one, operands, sources
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.diagnostics.inplace_and_views import state_dict_aliases_parameters
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import Label, StandingOut

_UPDATES = frozenset(
    f"Tensor.{name}"
    for name in "copy_ lerp_ add_ sub_ mul_ div_ addcmul_ __iadd__ __isub__ __imul__ __itruediv__".split()
)
_FROM_ARRAY = ("torch.from_numpy", "torch.as_tensor", "torch.asarray")
_ADDING = frozenset(("add", "radd", "iadd"))
_DIFFERENCES = frozenset(
    "Tensor.sub torch.sub Tensor.__sub__ Tensor.subtract torch.subtract Tensor.dist torch.dist nn.functional.mse_loss "
    "nn.functional.l1_loss nn.functional.smooth_l1_loss nn.functional.huber_loss".split()
)


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds loads that copy each tensor onto itself, updates from the same memory, and differences with it."""
    facts = training.facts
    reported = found_already(facts)
    loads: dict[int, list[Call]] = defaultdict(list)
    updates: dict[tuple[int, str], list[Call]] = defaultdict(list)
    differences: dict[tuple[int, str], list[Call]] = defaultdict(list)
    added = {access.tensor for call in facts.calls if op_name(call) in _ADDING for access in call.inputs}
    for call in module_loads(facts):
        loads[call.site].append(call)
    for call in facts.calls:
        if facts.trace.sites[call.site].through:
            continue
        elif call.op in _UPDATES and len(call.inputs) > 1 and call.writes:
            updates[call.site, call.op].append(call)
        elif call.op in _DIFFERENCES and len(call.inputs) == 2 and not _passes_gradient_on(facts, call, added):
            differences[call.site, call.op].append(call)
    for site, calls in loads.items():
        is_one_memory = all(is_one(facts, *_two(call), call.index) for call in calls)
        if site not in reported and is_one_memory and not any(_is_written(facts, call) for call in calls):
            yield _load(facts, calls)
    for every in updates.values():
        calls = [call for call in every if _is_known(facts, call)] or every
        met = _met_in_update(training, calls[0])
        if met is None or calls[0].site in reported:
            continue
        if all(_met_in_update(training, call) is not None for call in calls[1:]):
            reported |= {site.id for site in facts.trace.sites if facts.same_line(site.id, calls[0].site)}
            yield _update(facts, calls, met)
    for calls in differences.values():
        if calls[0].site not in reported:
            yield from _always_zero(training, calls)


def _always_zero(training: MeasuredTraining, calls: list[Call]) -> Iterator[StandingOut]:
    """Yields the sentence about a line, if it subtracts a parameter from itself at each of its last runs."""
    if _compared(training, calls[-1]) is None or _is_asserted(training.facts, calls[-1]):
        return  # nearly every line: the other calls need no look
    compared = [_compared(training, call) for call in calls]
    first = next((place for place, found in enumerate(compared) if found is not None), len(calls))
    since = [found for found in compared[first:] if found is not None]
    # an assignment of `.data`, or a new alias, may have made the two share their memory after the first calls
    if 2 * len(since) <= len(calls) or len(since) < len(calls) - first:
        return
    if not _are_attributes(since[0]) or any(_outlasts_a_step(training.facts, call) for call in calls[first:]):
        yield _difference(training.facts, calls[first:], since[0], is_always=not first)


def found_already(facts: TraceIndex) -> set[int]:
    """Returns the sites that a finding about state dicts labels."""
    findings = state_dict_aliases_parameters.find(facts)
    return {label.site for each in findings for label in each.labels if label.site is not None}


def _is_known(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the trace has what a call reads: a long run folds the calls that have made it."""
    return all(facts.tensor(access.tensor).dtype for access in call.inputs)


def _two(call: Call) -> tuple[int, int]:
    return call.inputs[0].tensor, call.inputs[1].tensor


def _is_written(facts: TraceIndex, load: Call) -> bool:
    """Returns whether a call before a load changes the tensor that it loads, by the name that the dict has for it: then
    the change is meant for the module, as where an adapter is merged."""
    source = load.inputs[1].tensor
    writes = facts.writes(facts.tensor(source).counter)
    return any(write.tensor == source and event.index < load.index for event, write in writes)


# --- what a line reads ------------------------------------------------------------------------------------------------


def _met_in_update(training: MeasuredTraining, call: Call) -> tuple[Operand, Operand] | None:
    """Returns the two names of one tensor, if all that an update reads is the tensor that it changes."""
    facts = training.facts
    target = operands(facts, call)[0]
    if call.writes[0].tensor != call.inputs[0].tensor or not _counts(training, call, target):
        return None
    read = [each for access in call.inputs[1:] for each in sources(facts, access.tensor, call)]
    direct = operands(facts, call)[1:]
    read = direct if len(direct) == 1 and is_one(facts, direct[0].tensor, target.tensor, call.index) else read
    read = [each for each in read if facts.tensor(each.tensor).shape or not facts.tensor(target.tensor).shape]
    if not read or not all(is_one(facts, each.tensor, target.tensor, call.index) for each in read):
        return None
    other = next((each for each in read if each.name != target.name), None)
    return (target, other) if other is not None and are_two_things(facts, call, target, other) else None


def _counts(training: MeasuredTraining, call: Call, target: Operand) -> bool:
    """Returns whether an update is one of a model's memory, or of a gradient. A plain copy counts wherever it is."""
    if call.op == "Tensor.copy_" or target.tensor in training.training.gradient_of:
        return True
    memory = training.facts.storage_of(target.tensor, call.index)
    leaves = training.training.leaves
    return memory is not None and any(training.facts.storage_of(leaf, call.index) == memory for leaf in leaves)


def _compared(training: MeasuredTraining, call: Call) -> tuple[Operand, Operand] | None:
    """Returns the two names of a parameter, if a call subtracts one from the other."""
    facts = training.facts
    one, other = operands(facts, call)
    if len({facts.tensor(access.tensor).shape for access in call.inputs}) > 1:
        return None  # one of them is broadcast
    if not is_one(facts, one.tensor, other.tensor, call.index) or not are_two_things(facts, call, one, other):
        return None
    if _are_attributes((one, other)) and not any(_is_kept_alias(facts, each.tensor, call) for each in (one, other)):
        return None  # `model.a.weight - model.b.weight` of tied weights
    memory = facts.storage_of(one.tensor, call.index)
    stepped = training.training.stepped
    return (one, other) if any(facts.storage_of(number, call.index) == memory for number in stepped) else None


def _are_attributes(met: tuple[Operand, Operand]) -> bool:
    return all("." in (each.name or "") and "[" not in (each.name or "") for each in met)


def _is_kept_alias(facts: TraceIndex, number: int, call: Call) -> bool:
    """Returns whether another line made a tensor from a parameter, as `self.old = self.loc.detach()` does."""
    made = facts.creator(number)
    is_alias = made is not None and facts.tensor(number).type != "Parameter"
    return is_alias and made is not None and not facts.same_line(made.site, call.site)


def _is_asserted(facts: TraceIndex, call: Call) -> bool:
    span = facts.span(call.site)
    return span is not None and isinstance(statement_around(facts, span), ast.Assert)


def _outlasts_a_step(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a step of an optimizer ran after a line made one of the tensors that a call compares."""
    made = max((each.index for access in call.inputs if (each := facts.creator(access.tensor))), default=call.index)
    return any(made < step.index < call.index for step in facts.trace.inspection.steps)


def _passes_gradient_on(facts: TraceIndex, call: Call, added: set[int]) -> bool:
    """Returns whether a difference is zero on purpose, as that of `round(w) + (w - w.detach())`: it has a graph by one
    of its parts only, and is added to something."""
    parts = [facts.requires_grad(access.tensor, call.index) for access in call.inputs]
    outputs = [access.tensor for access in call.outputs]
    has_graph = any(facts.requires_grad(number, call.index) for number in outputs)
    return has_graph and not all(parts) and not added.isdisjoint(outputs)


# --- sentences --------------------------------------------------------------------------------------------------------


def _load(facts: TraceIndex, calls: list[Call]) -> StandingOut:
    first = len({call.inputs[0].tensor for call in calls})
    each = "its tensor" if first == 1 else f"each of {first} tensors"
    text = f"{as_written(facts, calls[0])} copies {each} onto itself, and changes nothing"
    made = _kept(facts, calls[0])
    is_other = made is not None and made.site != calls[0].site
    return stands_out(
        text,
        facts.label("modified_here", calls[0].site, "source and destination share their memory"),
        facts.label("shared_here", made.site, "kept here, without a copy") if made is not None and is_other else None,
    )


def _kept(facts: TraceIndex, load: Call) -> Call | None:
    """Returns the call that made what is loaded; of a tensor on the memory of an array, the one that made the array."""
    made = facts.creator(load.inputs[1].tensor)
    if made is None or made.op not in _FROM_ARRAY:
        return made
    storage = facts.storage_of(load.inputs[1].tensor, load.index)
    arrays = (call for call in facts.calls if call.op == "Tensor.numpy" and call.index < made.index)
    return next((c for c in reversed([*arrays]) if facts.storage_of(c.inputs[0].tensor, c.index) == storage), made)


def _update(facts: TraceIndex, calls: list[Call], met: tuple[Operand, Operand]) -> StandingOut:
    target, other = met
    call = calls[0]
    copied = call.op == "Tensor.copy_" and is_one(facts, *_two(call), call.index)
    what = "copies a tensor onto itself" if copied else "updates a tensor from itself"
    text = f"{as_written(facts, call)} {what}: `{target.name}` and `{other.name}` share their memory"
    return stands_out(text, facts.label("modified_here", call.site, "written here"), _shared(facts, call, met))


def _difference(facts: TraceIndex, calls: list[Call], met: tuple[Operand, Operand], is_always: bool) -> StandingOut:
    one, other = met
    call = calls[0]
    often = "" if is_always else f" in each of the last {len(calls):,} times that it runs"
    what = f"{as_written(facts, call)} compares a tensor with itself{often}"
    text = f"{what}: `{one.name}` and `{other.name}` share their memory"
    return stands_out(text, facts.label("needed_here", call.site, "compared here"), _shared(facts, call, met))


def _shared(facts: TraceIndex, call: Call, met: tuple[Operand, Operand]) -> Label | None:
    """Returns the label of the line that made an alias, if it is another line, or that assigned the memory."""
    numbers = {each.tensor for each in met}
    assigned = (each for each in facts.calls if each.op == DATA_SET and each.inputs and each.index < call.index)
    for data_set in assigned:
        if {access.tensor for access in data_set.inputs} == numbers:
            return facts.label("shared_here", data_set.site, "they share their memory from here on", data_set.index)
    for each in met:
        made = facts.creator(each.tensor)
        if (
            made is not None
            and facts.tensor(each.tensor).type != "Parameter"
            and not facts.same_line(made.site, call.site)
        ):
            return facts.label("shared_here", made.site, "made here without a copy")
    return None

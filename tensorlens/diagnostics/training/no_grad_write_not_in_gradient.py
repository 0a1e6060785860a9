"""Finds the cause of `no-grad-write-not-in-gradient`."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.aliases import is_plain_variable
from tensorlens.analysis.code_around import statement_at
from tensorlens.analysis.lineage import ancestry, backward_reaches
from tensorlens.analysis.shared_frame import is_argument
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.diagnostics.shared.edits.scopes import changed_name, has_other_name, only_block_of
from tensorlens.diagnostics.shared.edits.writes import new_value
from tensorlens.diagnostics.shared.wording import as_written, finding, fix, in_iteration, named, source_text
from tensorlens.records.model import Backward, Call, State
from tensorlens.records.report import Diagnostic, Edit, Label

CODE = "no-grad-write-not-in-gradient"
ENOUGH = 4  # changes on one line that are examined
SHIFTS = ("Tensor.add_", "Tensor.sub_", "Tensor.__iadd__", "Tensor.__isub__")
_FLAT = ("sign", "sgn", "round", "floor", "ceil", "trunc", "heaviside", "gt", "ge", "lt", "le", "argmax")
ALIASES = ("Tensor.detach", "torch.detach", "Tensor.data.__get__", "Tensor.numpy")


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of an activation's values that was not recorded. `call` is None if PyTorch did not see the change."""

    index: int
    site: int
    call: Call | None
    written: int
    activation: int

    @property
    def before(self) -> int:
        """The index of the last event before the change."""
        return self.index if self.call is None else self.index - 1


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    stale = {site for saved in facts.trace.inspection.stale for site in _overwriting(facts, saved.overwrite)}
    looked_at: Counter[int] = Counter()
    for change in _changes(facts):
        looked_at[change.site] += 1
        if change.site in stale or looked_at[change.site] > ENOUGH:
            continue
        backward = _used_by(facts, change)
        if backward is not None:
            looked_at[change.site] = ENOUGH  # one finding for a line
            yield _report(facts, change, backward)


def _overwriting(facts: TraceIndex, number: int | None) -> tuple[int, ...]:
    return () if number is None else facts.trace.inspection.overwrites[number].sites


def _changes(facts: TraceIndex) -> Iterator[_Change]:
    changing = [call for call in facts.calls if call.writes or call.op == DATA_SET]
    seen = {call.site for call in changing if _only_shifts(facts, call)}
    functions = _writing_functions(facts)
    for call in changing:
        for number in _written(facts, call):
            for activation in _activations(facts, number, call):
                outer = functions.get(facts.tensor(activation).counter, ())
                if not any(_is_inside(call, function) for function in outer):
                    seen.add(call.site)
                    yield _Change(call.index, call.site, call, number, activation)
    for overwrite in facts.trace.inspection.overwrites:
        if overwrite.tensor is not None and len(overwrite.sites) == 1 and overwrite.sites[0] not in seen:
            for activation in _owners(facts, overwrite.tensor):
                if _is_activation(facts, activation, overwrite.index):
                    yield _Change(overwrite.index - 1, overwrite.sites[0], None, overwrite.tensor, activation)


def _written(facts: TraceIndex, call: Call) -> Iterator[int]:
    """Yields the tensors that a call changed without recording the change."""
    for write in () if _only_shifts(facts, call) else call.writes:
        if call.mode != "grad" or not facts.requires_grad(write.tensor, call.index):
            yield write.tensor
    if call.op == DATA_SET:
        number = call.inputs[0].tensor
        if facts.storage_of(number, call.index - 1) != facts.storage_of(number, call.index):
            yield number


def _only_shifts(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call only added constants. Then the derivative by the old value is also that by the new one."""
    if call.op not in SHIFTS or not call.writes:
        return False
    memory = facts.storage_of(call.writes[0].tensor, call.index)
    added = [access.tensor for access in call.inputs[1:]]
    return not any(facts.requires_grad(n, call.index - 1) or facts.storage_of(n, call.index) == memory for n in added)


def _activations(facts: TraceIndex, number: int, call: Call) -> list[int]:
    return [n for n in _owners(facts, number) if _is_activation(facts, n, call.index - 1)]


def _owners(facts: TraceIndex, number: int) -> list[int]:
    """Lists the tensor, the base that it is a view of, and the tensors from which `detach()` or `.data` made it."""
    owners = [number]
    for current in owners:
        base, made = facts.tensor(current).base, facts.creator(current)
        above = [] if base is None else [base]
        if made is not None and made.op in ALIASES:
            above += [access.tensor for access in made.inputs[:1]]
        owners += [n for n in above if n not in owners]
    return owners


def _is_activation(facts: TraceIndex, number: int, at: int) -> bool:
    state = facts.state(number, at)
    return state is not None and state.requires_grad and not state.is_leaf


def _writing_functions(facts: TraceIndex) -> dict[int, list[Call]]:
    """Maps version counters to the calls of custom Functions that wrote to their memory.

    `custom-function-unmarked-inplace` reports these.
    """
    functions: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if call.op.endswith(".apply"):
            for counter in {facts.tensor(write.tensor).counter for write in call.writes}:
                functions[counter].append(call)
    return functions


def _is_inside(call: Call, function: Call) -> bool:
    """Returns whether a call was made while a custom Function ran.

    The Function's own call is recorded after it, and its range of nodes contains the other's.
    """
    return function.index > call.index and function.nodes[0] <= call.nodes[0] and function.nodes[1] >= call.nodes[1]


def _used_by(facts: TraceIndex, change: _Change) -> Backward | None:
    """Finds the backward pass that goes through the activation after its change, along the history from before."""
    state = facts.state(change.activation, change.before)
    uses = [
        call
        for call in facts.calls
        if call.index > change.index and any(access.tensor == change.activation for access in call.inputs)
        and call.mode == "grad" and any(s.requires_grad and not s.is_leaf for s in call.states)
        and _node(facts, change.activation, call.index - 1) == (None if state is None else state.node)
    ]  # fmt: skip
    for backward in facts.backwards:
        if backward.index > change.index and not backward.failed:
            if any(root.tensor == change.activation for root in backward.roots):
                return backward
            if any(use.index < backward.index and backward_reaches(facts, backward, use) for use in uses):
                return backward
    return None


def _node(facts: TraceIndex, number: int, at: int) -> int | None:
    state = facts.state(number, at)
    return None if state is None else state.node


def _report(facts: TraceIndex, change: _Change, backward: Backward) -> Diagnostic:
    name = named(facts, change.activation, change.before)
    state = facts.state(change.activation, change.before)
    built = None if state is None else facts.call_of_node(state.node, change.index, state.grad_fn)
    bare = name.strip("`") if name.startswith("`") else "x"
    off = change.call is not None and change.call.mode != "grad"
    when = "" if change.call is None else in_iteration(facts, change.call)
    intended = _is_straight_through(facts, change) or _is_value_set_first(facts, change)
    place = facts.span(change.site)
    new = f"make a new tensor{' where gradients are recorded' if off else ''}, and use it from here on: `{bare} = ...`"
    skipping = f"if the gradient is to skip the change, write that: `{bare} + (changed - {bare}).detach()`"
    fixes = [fix(new, *_recorded(facts, change), place=place), fix(skipping, place=place)]
    return finding(
        CODE,
        "note" if intended else "warning",
        f"{_code(facts, change)} wrote into {name}{when}, and the gradient leaves this out",
        f"what follows uses the new values of {name}; its derivative is still that of the old ones",
        [
            facts.label("modified_here", change.site, f"writes into {_memory(facts, change, name)}; not recorded"),
            None if built is None else facts.label("graph_built_here", built.site, f"{name} and its derivative"),
            _switch(facts, change),
            facts.label("needed_here", backward.site, "computes the gradient without the change"),
        ],
        fixes=tuple(reversed(fixes) if intended else fixes),
        evidence={"tensor": name, "op": None if change.call is None else change.call.op},
        detail=_detail(state),
    )


def _recorded(facts: TraceIndex, change: _Change) -> tuple[Edit, ...]:
    """Writes the change as an operation that makes a new tensor and is recorded: `h.data *= 2` becomes `h = h * 2`.

    Only if it is a statement of its own, or the only one of a `with` block, and the name means this tensor alone.
    """
    span = facts.span(change.site)
    statement = None if span is None or change.call is None else statement_at(facts, span.file, span.line)
    name = None if statement is None else changed_name(facts, change.site)
    if span is None or statement is None or name is None or not name.isidentifier():
        return ()
    known = {*facts.names.all_names(change.activation), facts.name(change.activation, change.before)}
    new = None if isinstance(statement, ast.Assign) else new_value(facts, span.file, statement, name)
    if new is None or known != {name} or name in facts.names.syntax.loop_names():
        return ()
    is_alone = not has_other_name(facts, span.file, name) and is_plain_variable(facts, change.site, name)
    if is_argument(facts, change.site, name) or not is_alone:
        return ()  # what has the tensor under another name would keep the old values
    off = change.call is not None and change.call.mode != "grad"
    whole = only_block_of(facts, span.file, statement) if off else statement
    if whole is None or statement.lineno != statement.end_lineno:
        return ()
    return (Edit(facts.span_of(whole, span.file), f"{name} = {new}"),)


def _code(facts: TraceIndex, change: _Change) -> str:
    if change.call is None:
        return "a write outside torch"
    return as_written(facts, change.call)


def _memory(facts: TraceIndex, change: _Change, name: str) -> str:
    if change.call is None or change.written == change.activation:
        return name
    return f"{name} through {_alias(facts, change.written, named(facts, change.written, change.index))}"


def _detail(state: State | None) -> tuple[str, ...]:
    node = "" if state is None or state.grad_fn is None else f"the derivative is that of {state.grad_fn}; "
    return (f"{node}`--reference` can't prove it: copies of saved tensors do not show how the change should count",)


def _is_straight_through(facts: TraceIndex, change: _Change) -> bool:
    """Returns whether the new values are rounded ones, or signs, of the old.

    Their derivative is zero, so the program means the derivative of the old values.
    """
    call = change.call
    if call is None:
        return False
    if call.op.rpartition(".")[2].strip("_") in _FLAT:
        return True
    if call.op not in (DATA_SET, "Tensor.copy_") or len(call.inputs) < 2:
        return False
    above = [inner for _, inner in ancestry(facts, call.inputs[-1].tensor, call.index)]
    flat = (inner for inner in above if inner.op.rpartition(".")[2] in _FLAT)
    owner = facts.storage_of(change.activation, change.before)
    return any(facts.storage_of(access.tensor, inner.index) == owner for inner in flat for access in inner.inputs)


def _is_value_set_first(facts: TraceIndex, change: _Change) -> bool:
    """Returns whether the script set the value through `.data` before anything used it.

    This is one way to write a value that has the gradient of another on purpose.
    """
    made = facts.creator(change.written)
    if change.call is None or made is None or (made.op != "Tensor.data.__get__" and change.call.op != DATA_SET):
        return False
    earlier = (call for call in facts.calls if call.index < change.index and call.nodes[1] > call.nodes[0])
    return not any(access.tensor == change.activation for call in earlier for access in call.inputs)


def _alias(facts: TraceIndex, number: int, name: str) -> str:
    made = facts.creator(number)
    if not facts.names.is_named(number) and made is not None:
        return f"`{source_text(facts, made.site)}`"
    return name


def _switch(facts: TraceIndex, change: _Change) -> Label | None:
    switch = facts.mode_switch(change.index) if change.call is not None and change.call.mode != "grad" else None
    return None if switch is None else facts.label("grad_mode_off_here", switch.site, "recording is off from here on")

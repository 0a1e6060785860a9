"""Finds the cause of `no-grad-write-not-in-gradient`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import backward_reaches
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.diagnostics.shared.proof import BEYOND_COPIES
from tensorlens.diagnostics.shared.wording import finding, fix, in_iteration, named, op_text, source_text
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import Diagnostic, Label

CODE = "no-grad-write-not-in-gradient"
ENOUGH = 4  # changes on one line that are examined
SHIFTS = ("Tensor.add_", "Tensor.sub_", "Tensor.__iadd__", "Tensor.__isub__")
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
    built = facts.call_of_node(None if state is None else state.node, change.index)
    node = "its history" if state is None or state.grad_fn is None else f"`{state.grad_fn}`"
    return finding(
        CODE,
        "warning",
        f"the values of {name} were changed without a record, and backward goes through it",
        f"what is computed from {name} uses the new values, but its derivative is still that of {node}, "
        "as if nothing had changed",
        [
            facts.label("modified_here", change.site, _text(facts, change, name)),
            None
            if built is None
            else facts.label("graph_built_here", built.site, f"{name} is recorded here by {node}"),
            _switch(facts, change),
            facts.label("needed_here", backward.site, "the gradient leaves the change out"),
        ],
        notes=(BEYOND_COPIES,),
        fixes=(
            fix(f"make a new tensor where gradients are recorded: `{_bare(name)} = ...` instead of a change in place"),
            fix(f"if the change is not to count, say so: change a `clone()`, or `detach()` {name} for good"),
        ),
        evidence={"tensor": name, "op": None if change.call is None else change.call.op},
    )


def _text(facts: TraceIndex, change: _Change, name: str) -> str:
    if change.call is None:
        return f"the memory of {name} is changed here, outside torch"
    written = named(facts, change.written, change.index)
    through = "" if change.written == change.activation else f" through {_alias(facts, change.written, written)}"
    return f"{op_text(change.call.op)} changes {name}{through}{in_iteration(facts, change.call)}"


def _alias(facts: TraceIndex, number: int, name: str) -> str:
    made = facts.creator(number)
    if not facts.names.is_named(number) and made is not None:
        return f"`{source_text(facts, made.site)}`"
    return name


def _bare(name: str) -> str:
    return name.strip("`")


def _switch(facts: TraceIndex, change: _Change) -> Label | None:
    switch = facts.mode_switch(change.index) if change.call is not None and change.call.mode != "grad" else None
    return None if switch is None else facts.label("grad_mode_off_here", switch.site, "recording is off from here on")

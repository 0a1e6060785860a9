"""Counts what a run did: calls, backward passes, optimizer steps, and the parameters that these trained.

A number is None if the trace does not establish it: a long run folds calls, and compiled code hides them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.trace_index import TraceIndex, index_of
from tensorlens.analysis.training.timeline import DATA_SET, GRAD_SET, Training, training_of
from tensorlens.records.model import Backward, Call, Trace
from tensorlens.records.observations import MAX_NOTED

_COUNTED = (Call, Backward)  # a test against `Call | Backward` takes three times as long
_FUSED = "torch._fused_"
_CHECKS_OVERFLOW = "torch._amp_"  # a step with these may skip its update inside a fused kernel


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The numbers of a run. A parameter counts once, however many names, modules and optimizers hold it.

    `parameters` = `trained` + `len(untrained)`. None: not known.
    """

    calls: int  # torch calls, `backward()` among them
    backward_passes: int | None  # not those inside another pass
    optimizers: int | None  # that the run made
    optimizer_steps: int | None
    parameters: int | None  # held by the optimizers that stepped
    trained: int | None  # of these: with a gradient at one step at least
    never: int | None  # of these: never had a gradient
    frozen: int | None  # of the untrained: required grad at no step
    untrained: tuple[str, ...]  # names; those that required grad come first


def run_summary(trace: Trace) -> RunSummary:
    counts = _Counts(index_of(trace))
    held, trained, untrained = counts.parameters, counts.trained, sorted(counts.untrained)
    frozen = {number for number in untrained if not counts.required_grad(number)}
    ordered = [*(n for n in untrained if n not in frozen), *(n for n in untrained if n in frozen)]
    names = names_of(trace)
    return RunSummary(
        calls=call_count(trace),
        backward_passes=counts.backward_passes(),
        optimizers=counts.optimizers(),
        optimizer_steps=len(counts.steps) if counts.has_all_steps else None,
        parameters=None if held is None else len(held),
        trained=None if trained is None else len(trained),
        never=counts.never(),
        frozen=None if trained is None or not is_complete(trace) else len(frozen),
        untrained=() if trained is None else tuple(names.display_name(number) for number in ordered),
    )


def call_count(trace: Trace) -> int:
    """Counts the torch calls. The step of an optimizer, which is an event for each parameter, counts once."""
    if trace.totals:
        return sum(total.count for total in trace.totals)
    return sum(isinstance(event, _COUNTED) for event in trace.events)


def is_complete(trace: Trace) -> bool:
    """Returns whether the trace has every event of its run: a long run folds calls."""
    return not trace.events or trace.events[-1].index + 1 == len(trace.events)


class _Counts:
    def __init__(self, facts: TraceIndex) -> None:
        self._facts = facts
        self._trace = facts.trace
        self._training: Training = training_of(facts)
        self.steps = self._trace.inspection.steps
        self._ops = {total.op for total in self._trace.totals} | {call.op for call in facts.calls}

    def backward_passes(self) -> int | None:
        passes = self._facts.backwards
        own = outer(passes)
        if len(own) < len(passes) and self._trace.inspection.threads:
            return None  # a pass of another thread may have begun and ended during one
        if is_complete(self._trace):
            return len(own)
        if len(own) < len(passes) or any(failure.op == "autograd.grad" for failure in self._trace.failures):
            return None  # the totals count inner passes too, and no failed `autograd.grad`
        names = ("Tensor.backward", "autograd.backward", "autograd.grad")
        return sum(total.count for total in self._trace.totals if total.op in names)

    def optimizers(self) -> int | None:
        """Counts the optimizers that were made. One that was made before the recording, or copied, is not known."""
        made = {op for op in self._ops if op.startswith("optim.") and op.count(".") == 1}
        if any("optim." + step.op.removesuffix(".step") not in made for step in self.steps):
            return None
        if self._trace.totals:
            return sum(total.count for total in self._trace.totals if total.op in made)
        return sum(call.op in made for call in self._facts.calls)

    @cached_property
    def has_all_steps(self) -> bool:
        """Returns whether every step is noted. The tracer notes no more steps of known parameters once it has noted
        `MAX_NOTED` parameters."""
        noted = sum(len(step.parameters) for step in self.steps)
        return self._sees_steps and noted + len(self._training.stepped) <= MAX_NOTED

    @cached_property
    def _sees_steps(self) -> bool:
        return sees_steps(self._training)

    @property
    def parameters(self) -> set[int] | None:
        return self._training.stepped if self._sees_steps else None

    @cached_property
    def trained(self) -> set[int] | None:
        """The parameters that a step found a gradient of."""
        if not self._sees_steps or may_skip_updates(self._facts):
            return None
        found, changes = stepped_with_gradient(self._training), OptimizerChanges(self._facts)
        others = had_gradient(self._training) & self._training.stepped - found
        # a closure may have cleared the gradients that its step used
        return None if any(changes.changed(number) for number in others) else found

    @property
    def untrained(self) -> set[int]:
        return self._training.stepped - (self.trained or set())

    def never(self) -> int | None:
        if not self._sees_steps:
            return None
        without = self._training.stepped - had_gradient(self._training)
        all_known = is_complete(self._trace) or not self._training.stepped - stepped_with_gradient(self._training)
        return len(without) if all_known else None

    def required_grad(self, number: int) -> bool:
        """Returns whether a parameter required grad at one of the noted steps."""
        return any(
            self._facts.requires_grad(number, step.index - 1) for step in self.steps if number in step.parameters
        )


def outer(passes: list[Backward]) -> list[Backward]:
    """Returns the passes that did not run inside another one, as those of reentrant checkpoints do."""
    found: list[Backward] = []
    started: int | None = None  # the first event of a pass that ended later
    for each in reversed(passes):
        if started is None or each.index < started:
            found.append(each)
        started = each.started if started is None else min(started, each.started)
    return found


class OptimizerChanges:
    """Finds the tensors that optimizer steps changed, directly or through an alias."""

    def __init__(self, facts: TraceIndex) -> None:
        self._facts = facts
        self._training = training_of(facts)
        self._is_complete = is_complete(facts.trace)
        calls = [call for call in facts.calls if call.within]
        written = [(call, write.tensor) for call in calls for write in call.writes]
        self._counters = {facts.tensor(number).counter for _, number in written}
        self._storages = {facts.storage_of(number, call.index) for call, number in written} - {None}
        self._tensors = {call.inputs[0].tensor for call in calls if call.op == DATA_SET}
        self._fused = {each.tensor for call in calls if call.op.startswith(_FUSED) for each in call.inputs}

    def changed(self, number: int) -> bool | None:
        """Returns whether a step changed a tensor; None if that is not known."""
        if number in self._tensors or self._facts.tensor(number).counter in self._counters:
            return True
        if self._facts.storages_of(number) & self._storages:
            return True
        if number in self._fused:
            return None if may_skip_updates(self._facts) else True
        if not sees_steps(self._training):
            return None
        if number not in self._training.stepped:
            return False
        # an optimizer that found a gradient has most likely used it, in a way that is not recorded
        return False if self._is_complete and number not in stepped_with_gradient(self._training) else None


def sees_steps(training: Training) -> bool:
    """Returns False if steps ran that are not noted: in compiled code, or ended by an exception of their closure."""
    running = {call.within for call in training.facts.calls if call.within}
    return not training.is_hidden and running <= {step.op for step in training.steps}


def stepped_with_gradient(training: Training) -> set[int]:
    """Returns the parameters that a step found a gradient of."""
    pairs = (pair for step in training.steps for pair in zip(step.parameters, step.gradients, strict=True))
    return {number for number, gradient in pairs if gradient is not None}


def had_gradient(training: Training) -> set[int]:
    """Returns the tensors that had a gradient: from a backward pass, from an assignment, at a step or at the end."""
    trace = training.facts.trace
    given = {call.inputs[0].tensor for call in training.facts.calls if call.op == GRAD_SET and len(call.inputs) > 1}
    return training.had_gradient | given | {state.tensor for state in trace.end.states if state.grad is not None}


def may_skip_updates(facts: TraceIndex) -> bool:
    """Returns whether a fused kernel may have skipped an update because of an overflow."""
    ops = {total.op for total in facts.trace.totals} | {call.op for call in facts.calls}
    return any(op.startswith(_FUSED) for op in ops) and any(op.startswith(_CHECKS_OVERFLOW) for op in ops)

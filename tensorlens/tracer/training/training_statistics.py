"""Measures the training of a run with `--training`: at each optimizer step, and after each backward pass.

A fact of a parameter is about the steps of the optimizers that hold it. A leaf that no optimizer has stepped has
facts about the backward passes that reached it, so that a parameter that was never given to an optimizer is seen.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from functools import partial
from math import isfinite
from types import FrameType
from typing import TYPE_CHECKING

import torch

from tensorlens.journal.child_config import Measurement
from tensorlens.records.training import OptimizerGroup, ParameterMovement, ParameterStatistics, TrainingMeasured
from tensorlens.records.training_values import LoadedRate, UnreadOption
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch, MutedWithoutGraph
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.changed_while_kept import KeptResults
from tensorlens.tracer.training.equal_values import EqualValues, Moved
from tensorlens.tracer.training.functional_modes import FunctionalModes
from tensorlens.tracer.training.given_arrays import GivenArrays
from tensorlens.tracer.training.layer_modes import LayerModes
from tensorlens.tracer.training.live_memory import LiveMemory
from tensorlens.tracer.training.loaded_samples import LoadedSamples
from tensorlens.tracer.training.loaded_states import LoadedStates
from tensorlens.tracer.training.looks_at_losses import LossLooks
from tensorlens.tracer.training.made_options import MadeOptions
from tensorlens.tracer.training.nonfinite_seen import NonfiniteValues, Search
from tensorlens.tracer.training.optimizer_groups import (
    Group,
    SeenOptimizer,
    maker_of,
    momentum_of,
    number_of,
    rate_of,
    skips_step,
)
from tensorlens.tracer.training.padded_ids import LookedUpIds
from tensorlens.tracer.training.parameter_statistics import MeasuredParameter, gradient_norms
from tensorlens.tracer.training.registered_hooks import RegisteredHooks
from tensorlens.tracer.training.repeated_indices import WrittenIndices
from tensorlens.tracer.training.schedules import Schedules
from tensorlens.tracer.training.shared_states import SharedStates
from tensorlens.tracer.training.sorted_keys import OrderedKeys
from tensorlens.tracer.training.steady_steps import FoundParameter, SteadySteps
from tensorlens.tracer.training.zero_steps import ZeroSteps
from tensorlens.tracer.training.zeroed_gradients import ZeroedGradients

if TYPE_CHECKING:
    from tensorlens.tracer.training.term_gradients import TermGradients

MOST = 20_000  # parameters of a run that are measured
_Found = list[tuple[MeasuredParameter, torch.Tensor]]
_Unsteady = tuple[list[FoundParameter], tuple[int, ...]] | None  # parameters, and how many each group has


class TrainingStatistics:
    """The measurements of one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._guard = ErrorGuard(recorder, "the training")
        self._parameters: dict[int, MeasuredParameter] = {}
        self._optimizers: weakref.WeakKeyDictionary[torch.optim.Optimizer, SeenOptimizer] = weakref.WeakKeyDictionary()
        self._all, self._stepped = list[SeenOptimizer](), set[int]()  # parameters that were stepped
        self._zeroed, self._memory = ZeroedGradients(recorder), LiveMemory(recorder)
        self._losses = LossLooks(recorder)
        self._hooks, self._zero_steps = RegisteredHooks(recorder), ZeroSteps(recorder)
        self.schedules, self._equal = Schedules(recorder, self._count_of), EqualValues(recorder)
        self.layers, self.loads = LayerModes(recorder), LoadedStates(recorder)
        self.arrays, self.ids = GivenArrays(recorder), LookedUpIds(recorder)
        self.functional, self.indices = FunctionalModes(recorder), WrittenIndices(recorder)
        self.sorts, self.samples, self.kept = OrderedKeys(recorder), LoadedSamples(recorder), KeptResults(recorder)
        self.shared_states, self.nonfinite = SharedStates(recorder, self._count_of), NonfiniteValues(recorder)
        self._terms: TermGradients | None = None
        self._steps = self._passes = self._written = 0

    def search_nonfinite(self, search: Search) -> Callable[[], tuple[int, int]]:
        """Has the first loss or gradient that is not finite explained. Returns what counts passes and steps."""
        self.nonfinite.search = search
        return lambda: (self.nonfinite.passes, self._steps)

    def measure_terms(self, wanted: Sequence[Measurement]) -> None:
        """Measures the gradient of each term of losses, and of columns of gradients, in a second run."""
        from tensorlens.tracer.training.term_gradients import TermGradients  # not above: few runs do

        self._terms = TermGradients(self._recorder, wanted)

    # --- what happens -------------------------------------------------------------------------------------------------

    def made(self, optimizer: torch.optim.Optimizer, frame: FrameType) -> None:
        """Notes the groups of an optimizer that was made, or that has got another group."""
        with self._guard, torch._C.DisableTorchFunction():
            self.samples.optimizer_made()
            self._known(optimizer, self._recorder.sites.site_or_outside(maker_of(optimizer, frame)))

    def options_loaded(self, optimizer: torch.optim.Optimizer, site: int | None) -> None:
        """Notes that a state dict has replaced the options of an optimizer."""
        known = self._optimizers.get(optimizer)
        if known is not None and known.made is not None and not known.steps:
            replaced = known.made.replaced_rate(optimizer)
            known.loaded = None if replaced is None else (site, *replaced)

    def expect_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Keeps the values before a step with a closure, which computes the gradients: it is measured afterwards."""
        with self._guard, MutedDispatch(), self._recorder.quiet(), torch.no_grad():
            for options in optimizer.param_groups:
                for parameter in options["params"]:
                    if (measured := self._measured(parameter)) is not None:
                        measured.expect_round(parameter, stepped=True)
                        self._stepped.add(measured.number)

    def step(self, optimizer: torch.optim.Optimizer, parameters: list[FoundParameter]) -> None:
        """Measures the gradients that a step uses. `parameters` are those of the groups, in their order."""
        with self._guard, MutedWithoutGraph():
            known = self._optimizers.get(optimizer)
            sizes = tuple([len(options["params"]) for options in optimizer.param_groups])
            is_steady = known is not None and known.sizes == sizes and known.steady is not None and (
                known.steady.note(parameters))  # fmt: skip
            if known is not None and is_steady and self._steps & (self._steps + 1):
                self._begin_step(optimizer, known, None)
                return
            with self._recorder.quiet():
                self._begin_step(optimizer, self._known(optimizer, None), None if is_steady else (parameters, sizes))
                if self._steps & (self._steps - 1) == 0:
                    self._write()

    def _begin_step(self, optimizer: torch.optim.Optimizer, known: SeenOptimizer, unsteady: _Unsteady) -> None:
        """Measures what a step finds. `unsteady`: the parameters and the sizes of the groups; None at a steady step."""
        known.steps, self._steps = known.steps + 1, self._steps + 1
        known.turns = known.turns[0] or self._steps, self._steps
        self._memory.step(self._steps)
        self.layers.step(optimizer, known.number, self._steps)
        zero: list[MeasuredParameter] = []
        for group, options in zip(known.groups, optimizer.param_groups, strict=False):
            group.note_rate(options, known.steps == 1)
            group.steady += unsteady is None
        if unsteady is not None:
            self._settle()
            for group, options in zip(known.groups, optimizer.param_groups, strict=False):
                pairs = zip(group.parameters, options["params"], strict=False)
                group.found.update(number for number, parameter in pairs if parameter.grad is not None)
            found = self._round((each for each, *_ in unsteady[0]), known.number)
            zero = self._note(found, lambda: not skips_step(optimizer))
            known.sizes, known.steady = unsteady[1], self._steady(known, found, len(unsteady[0]))
        if zero or self._zero_steps.is_waiting:
            self._zero_steps.step_begins(optimizer, known.number, [(each.number, each.ref) for each in zero])
        self.shared_states.step_begins(optimizer, is_examined=self._steps & (self._steps - 1) == 0)

    def step_ended(self, optimizer: torch.optim.Optimizer) -> None:
        """Measures what a step has moved although it found a gradient of zeros."""
        if self._zero_steps.is_waiting:
            with self._guard, torch._C.DisableTorchFunction(), MutedWithoutGraph(), self._recorder.quiet():
                self._zero_steps.step_ended(optimizer)

    def pass_begins(self, roots: Sequence[torch.Tensor], inputs: Sequence[object]) -> Callable[[], None] | None:
        """Notes how the loss was reduced, what is not finite and what makes zeros. Returns what ends the pass."""
        ends: list[Callable[[], None]] = []
        with self._guard, self._recorder.quiet():
            begun = self.nonfinite.pass_begins(roots, self._steps), self._zeroed.begin_pass(roots)
            ends += [end for end in begun if end is not None]
            self._memory.pass_begins(roots, self._steps + 1)
            self._losses.begin_pass(roots)
            if self._terms is not None:
                self._terms.begin_pass(roots, inputs)
        return partial(self._end_pass, ends) if ends else None

    def _end_pass(self, ends: Sequence[Callable[[], None]]) -> None:
        for end in ends:
            with self._guard, torch._C.DisableTorchFunction():
                end()

    def pass_ended(self, leaves: Sequence[int]) -> None:
        """Measures the gradients of the leaves that a backward pass has reached, unless an optimizer steps them."""
        self.samples.passes = self._passes = self._passes + 1
        looks_at_hooks = self._passes & (self._passes - 1) == 0
        if not looks_at_hooks and self._stepped.issuperset(leaves):
            return
        waiting = [number for number in leaves if number not in self._stepped]
        with self._guard, MutedDispatch(), self._recorder.quiet(), torch.no_grad():
            if looks_at_hooks:
                self._hooks.look(self._passes)
            known = self._recorder.leaves
            tensors = [tensor for n in waiting if n in known and (tensor := known[n]()) is not None]
            self._note(self._round([each for each in tensors if each.is_leaf], None), lambda: False)
            if looks_at_hooks and not self._steps:
                self._write()  # at the end, a run without an optimizer may hold no parameter

    def end(self) -> None:
        """Writes the facts of the whole run."""
        with self._guard, torch._C.DisableTorchFunction(), MutedDispatch(), self._recorder.quiet(), torch.no_grad():
            self._hooks.look(self._passes)
            self.nonfinite.end(lambda n: n not in self._stepped and self._parameters[n].is_never_finite)
            self._write()

    # --- measuring ----------------------------------------------------------------------------------------------------

    def _known(self, optimizer: torch.optim.Optimizer, site: int | None) -> SeenOptimizer:
        known = self._optimizers.get(optimizer)
        if known is None:
            known = SeenOptimizer(len(self._all), type(optimizer).__name__, [], made=MadeOptions.of(optimizer))
            self._optimizers[optimizer] = known
            self._all.append(known)
        for place, options in enumerate(optimizer.param_groups):
            numbers = tuple(map(self._recorder.tensor_ids.id_of, options["params"]))
            if place == len(known.groups):
                rate, decay = rate_of(options), number_of(options.get("weight_decay"))
                shared = any(each is options for other in self._optimizers if other is not optimizer
                             for each in other.param_groups)  # fmt: skip
                known.groups.append(Group(site, numbers, (rate, rate), decay, momentum_of(options), shared, rate))
            known.groups[place].settle()
            known.groups[place].parameters = numbers
        return known

    def _count_of(self, optimizer: torch.optim.Optimizer) -> tuple[int, int, int]:
        """Returns (number of an optimizer, its steps, steps of all optimizers)."""
        known = self._known(optimizer, None)
        return known.number, known.steps, self._steps

    def _measured(self, parameter: torch.Tensor) -> MeasuredParameter | None:
        """Returns what measures a parameter; None if too many are measured already."""
        ref, number, *_ = self._recorder.tensor_ids.entry(parameter)
        measured = self._parameters.get(number)
        if measured is None and len(self._parameters) < MOST:
            measured = self._parameters[number] = MeasuredParameter(number, ref)
        return measured

    def _round(self, parameters: Iterable[torch.Tensor], optimizer: int | None) -> _Found:
        """Begins a round of some parameters, of an optimizer or none. Returns those with a gradient, and these."""
        found: _Found = []
        for parameter in parameters:
            measured = self._measured(parameter)
            if measured is None:
                continue
            measured.begin_round(parameter, optimizer is not None, optimizer)
            if optimizer is not None:
                self._stepped.add(measured.number)
            gradient = parameter.grad
            if gradient is not None:
                dense = gradient.to_dense() if gradient.layout is not torch.strided else gradient
                if is_measurable(dense):
                    found.append((measured, dense.detach()))
        return found

    def _steady(self, known: SeenOptimizer, found: _Found, total: int) -> SteadySteps | None:
        """Returns what measures the next steps of an optimizer. Of optimizers with the same parameters, none does."""
        numbers = {measured.number for measured, _ in found}
        shared = [o for o in self._all if o is not known and o.steady is not None and o.steady.measures(numbers)]
        for other in shared:
            other.steady = None
        return None if shared else SteadySteps.after(found, total, self._recorder.tensor_ids.in_c)

    def _settle(self) -> None:
        for each in self._all:
            if each.steady is not None:
                each.steady.settle()

    def _note(self, found: _Found, does_use: Callable[[], bool]) -> list[MeasuredParameter]:
        """Adds gradients. Returns the parameters whose gradient consists of zeros.

        Of the gradients that no step uses (`does_use`), those of leaves without an optimizer count as the script's
        result.
        """
        norms = gradient_norms([gradient for _, gradient in found])
        if not self.nonfinite.found and not all(map(isfinite, norms)):
            uses_all = does_use()
            odd = [pair for pair, norm in zip(found, norms, strict=True) if not isfinite(norm)]
            held = set() if uses_all else {n for each in self._all for group in each.groups for n in group.parameters}
            self.nonfinite.look_at([(m.number, g) for m, g in odd if m.number not in held], self._steps - uses_all)
            self.nonfinite.keep_unused([(m.number, g) for m, g in odd if m.number in held], self._steps)
        zero: list[MeasuredParameter] = []
        for (measured, gradient), norm in zip(found, norms, strict=True):
            if measured.note(gradient, norm):
                zero.append(measured)
            if measured.filled == measured.zero:
                self._zeroed.want(measured.number, measured.ref)
            elif measured.zero:
                self._zeroed.unwant(measured.number)
        return zero

    def _write(self) -> None:
        self._settle()
        number, rows = self._written, self._recorder.rows
        self._written += 1
        for seen in self._all:
            for place, group in enumerate(seen.groups):
                group.settle()
                what = (seen.number, place, seen.name, group.site, group.parameters, seen.steps)
                counts = tuple(map(group.found.__getitem__, group.parameters))
                more = (group.course.all(), seen.turns, group.is_shared, counts, group.made_rate, group.first_rates)
                rows.write_fact(OptimizerGroup, number, *what, group.rates, group.weight_decay, group.momentum, *more)
        moved: list[Moved] = []
        for parameter in self._parameters.values():
            rows.write_fact(ParameterStatistics, *astuple(parameter.statistics(number))[1:])
            movement = parameter.movement(number)
            if movement is not None:
                rows.write_fact(ParameterMovement, *astuple(movement)[1:])
                tensor = parameter.ref()
                if tensor is not None and parameter.stepped:
                    moved.append((tensor, parameter.filled - parameter.zero, movement))
        self._equal.write(number, moved)
        for optimizer, known in list(self._optimizers.items()):
            known.unread = () if known.made is None else tuple(known.made.unread(optimizer))
        for known in self._all:
            for unread in known.unread:
                rows.write_fact(UnreadOption, number, known.number, *unread)
            if known.loaded is not None:
                rows.write_fact(LoadedRate, number, known.number, *known.loaded)
        for part in (self._zero_steps, self.shared_states, self.schedules, self.layers, self.loads, self.arrays,
                     self.ids, self.functional, self.samples):  # fmt: skip
            part.write(number)
        rows.write_fact(TrainingMeasured, number, self._steps, self._passes)

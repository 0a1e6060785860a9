"""Follows in which mode dropout and batch norm run for each step: in eval mode they do something else.

So do modules of the script whose `forward` reads `self.training`. It is not seen when these run, so their mode counts
at each step that has gradients of their parameters, or of those of the module around them if they have none.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from tensorlens.records.training import EvaluatingSteps, FrozenStatistics
from tensorlens.records.training_values import InitialStatistics, TrainingModeKept
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import clone, detach, equal, numel
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.mode_readers import LAYERS, holder_of, reads_mode

MOST = 1_000  # layers of a run that are followed
_SMALL = 1 << 20  # elements: a larger input is not compared with the one before
_BATCH_NORM = torch.nn.modules.batchnorm._BatchNorm


@dataclass(slots=True)
class _Switch:
    """A call of `train()` or `eval()` of a module around a layer, or of the layer itself."""

    module: weakref.ref[torch.nn.Module]
    training: bool
    site: int | None
    is_inner: bool  # `train()` or `eval()` of a module around it made the call
    evaluated: bool = False  # the layer has run since, without a graph
    trained: bool = False  # it has run since with gradients on


@dataclass(slots=True)
class _Layer:
    ref: weakref.ref[torch.nn.Module]
    name: str
    switch: _Switch | None = None
    modes: set[bool] = field(default_factory=set)  # in which it has run with gradients on, since the last step
    trained: Counter[int] = field(default_factory=Counter)  # steps by optimizer
    evaluating: dict[int, list[int]] = field(
        default_factory=dict
    )  # optimizer -> its steps, after such in training mode
    only_evaluating: dict[int, list[int]] = field(default_factory=dict)  # optimizer -> its steps, before any of these
    cause: tuple[str, int | None] | None = None  # the module that was switched before the first of these, and the line
    is_updated: bool = False  # its statistics, since the last step, without a parameter that is trained
    site: int | None = None
    switched: int | None = None  # the line that switched it to training mode before
    parameters: tuple[int, ...] = ()
    frozen_steps: int = 0
    trains_part: bool = False  # one of these trains a parameter of the module that was switched
    has_resumed: bool = False  # it was trained after these
    initial: tuple[int | None, int | None] | None = (
        None  # lines that ran and switched it, if its statistics are initial
    )
    looked_at: tuple[int, ...] = ()  # the versions of its values at the last look
    unrecorded: int = 0  # runs in training mode without a graph, after it was trained
    shown: int | None = None  # the line of the last of these
    evaluated: int | None = None  # the line that had switched another module to eval mode before
    was_switched: bool = False  # to eval mode, ever
    is_between: bool = False  # switched to eval mode since the last step
    waiting: int = 0  # runs without a graph since the line `switch` switched it back to training mode
    resumed: int | None = None  # a line that switched it back, and after which all its runs were without a graph
    is_reader: bool = False  # a module that reads `self.training`
    holder: weakref.ref[torch.nn.Module] | None = None  # the module around a reader without parameters that has some


class LayerModes:
    """Follows the layers of one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._all: list[_Layer] = []
        self._readers: dict[int, _Layer] = {}  # modules that read `self.training`, by id
        self._steps: Counter[int] = Counter()  # by optimizer
        self._layers: dict[int, _Layer] = {}  # by the id of the module, which a later one may have
        self._ran: dict[int, _Layer] = {}  # since the last step
        self._running: list[bool] = []  # the calls of `train()` that are running
        self._given: dict[int, torch.Tensor] = {}  # the last input of a layer without a graph, by the id of the layer
        self._evaluated: int | None = None  # the last line that switched a module to eval mode, and none back since
        self._samples = False  # a layer ran twice with equal values between two steps

    # --- what happens -------------------------------------------------------------------------------------------------

    @contextmanager
    def switching(
        self, module: torch.nn.Module, training: bool, site: int | None, is_inner: bool, without_graph: bool
    ) -> Iterator[None]:
        """Notes a call of `Module.train`; one that only passes its mode on to a part is none."""
        if not self._running:
            self._evaluated = None if training else site
        if not self._running or self._running[-1] != training:
            switch = weakref.ref(module), training, site, is_inner
            for part in module.modules():
                is_reader = reads_mode(type(part))
                layer = self._layer(part) if is_reader or isinstance(part, LAYERS) else None
                if layer is not None:
                    _end_waiting(layer)
                    layer.is_between |= not training
                    layer.was_switched |= not training
                    layer.switch = _Switch(*switch, evaluated=is_reader and without_graph and not training)
                    if is_reader and self._readers.get(id(part)) is not layer:
                        layer.is_reader = True
                        self._readers[id(part)] = layer
                        layer.trained.update(self._steps if part.training else ())
                    if is_reader and layer.holder is None:
                        layer.holder = holder_of(part, module)
        self._running.append(training)
        try:
            yield
        finally:
            self._running.pop()

    def ran(self, module: torch.nn.Module, given: object, site: int | None) -> None:
        """Notes a forward pass of a layer."""
        layer = self._layer(module) if _depends_on_mode(module) else None
        if layer is None:
            return
        self._ran[id(module)] = layer
        if torch.is_grad_enabled():
            layer.modes.add(module.training)
            layer.waiting, layer.is_between = 0, False
            if layer.switch is not None:
                layer.switch.trained = True
        else:
            self._ran_without_graph(layer, module, given, site)
        if not module.training and isinstance(module, _BATCH_NORM):
            self._look(layer, module, site)
        elif isinstance(module, _BATCH_NORM):
            layer.initial, layer.looked_at = None, ()
            has_graph = isinstance(given, torch.Tensor) and given.requires_grad
            own = list(module.parameters(recurse=False))
            if has_graph or not own or any(parameter.requires_grad for parameter in own):
                layer.has_resumed |= layer.frozen_steps > 0
                layer.is_updated = False
            else:
                layer.is_updated, layer.site = True, site
                layer.switched = None if layer.switch is None else layer.switch.site
                layer.parameters = tuple(map(self._recorder.tensor_ids.id_of, own))

    def _ran_without_graph(self, layer: _Layer, module: torch.nn.Module, given: object, site: int | None) -> None:
        """Counts a run in training mode of a layer that no line evaluates, or that a line has switched back for it, and
        one of dropout that no step trains, as of a teacher.

        A call of `train()` right before says that it is meant, as statistics that are computed for batch norm are; so
        does a call of `train()` of the layer itself, as for Monte-Carlo dropout.
        """
        switch = layer.switch
        is_meant = switch is not None and not switch.trained
        is_back = (
            layer.is_between and switch is not None and switch.training and switch.module() is not module
        ) and not isinstance(module, _BATCH_NORM)
        if switch is not None:
            switch.evaluated = True
        is_fixed = not layer.trained and bool(self._steps) and not isinstance(module, _BATCH_NORM)
        if module.training and (layer.trained or is_fixed) and (is_back or not (is_meant or layer.was_switched)):
            layer.waiting += is_back
            self._note_unrecorded(layer, given, site)

    def _note_unrecorded(self, layer: _Layer, given: object, site: int | None) -> None:
        """Counts a run in training mode without a graph. One with the values of the run before is a sample of several,
        as of Monte-Carlo dropout."""
        layer.unrecorded += 1
        layer.shown, layer.evaluated = site, self._evaluated
        if isinstance(given, torch.Tensor) and is_measurable(given) and numel(given) <= _SMALL:
            values = clone(detach(given))
            before, self._given[id(layer)] = self._given.get(id(layer)), values
            with MutedDispatch():
                self._samples |= before is not None and before.shape == values.shape and equal(before, values)
        else:
            self._samples = True  # it is not known

    def _look(self, layer: _Layer, module: torch.nn.modules.batchnorm._BatchNorm, site: int | None) -> None:
        """Notes whether a batch norm runs in eval mode with the statistics that it is made with, and other weights."""
        values = module.running_mean, module.running_var, module.weight, module.bias
        versions = tuple(0 if each is None else each._version for each in values)
        if versions != layer.looked_at:
            layer.looked_at = versions
            switched = None if layer.switch is None else layer.switch.site
            with MutedDispatch(), torch.no_grad():
                layer.initial = (site, switched) if _is_initial(*values) else None
            layer.parameters = tuple(map(self._recorder.tensor_ids.id_of, module.parameters(recurse=False)))

    def step(self, optimizer: torch.optim.Optimizer, number: int, step: int) -> None:
        """Notes for which layers a step was computed in which mode."""
        self._steps[number] += 1
        self._given.clear()
        if self._readers or self._ran:
            with self._recorder.quiet():
                self._note_modes(optimizer, number, step)

    def _note_modes(self, optimizer: torch.optim.Optimizer, number: int, step: int) -> None:
        if self._readers:
            self._note_readers(optimizer)
        trained: dict[int, bool] = {}
        for layer in self._ran.values():
            if layer.is_updated:
                layer.frozen_steps += 1
                layer.trains_part = layer.trains_part or _trains_part(layer.switch, optimizer, trained)
            if True in layer.modes:
                layer.trained[number] += 1
            elif layer.modes and _is_left_in_eval(layer, optimizer):
                assert layer.switch is not None
                steps = layer.evaluating if layer.trained[number] else layer.only_evaluating
                steps.setdefault(number, []).append(step)
                switched = layer.switch.module()
                layer.cause = layer.cause or (type(switched).__name__, layer.switch.site)
            layer.modes.clear()
            layer.is_updated = False
        self._ran.clear()

    def _note_readers(self, optimizer: torch.optim.Optimizer) -> None:
        held = {id(each) for group in optimizer.param_groups for each in group["params"] if each.grad is not None}
        for key, layer in self._readers.items():
            module = layer.ref()
            holder = module if layer.holder is None else layer.holder()
            if module is not None and holder is not None and any(id(each) in held for each in holder.parameters()):
                layer.modes.add(module.training)
                self._ran[key] = layer

    def write(self, number: int) -> None:
        """Writes the facts so far."""
        for layer in self._all:
            _end_waiting(layer)
            never = not layer.trained and layer.only_evaluating
            for optimizer, steps in (layer.only_evaluating if never else layer.evaluating).items():
                assert layer.cause is not None
                counts = layer.trained[optimizer], len(steps), steps[0]
                self._recorder.rows.write_fact(
                    EvaluatingSteps, number, optimizer, layer.name, *layer.cause, *counts, layer.is_reader
                )
            if layer.unrecorded and (layer.resumed is not None or not layer.was_switched) and not self._samples:
                trained = max(layer.trained.values(), default=0)
                kept = layer.name, layer.shown, layer.unrecorded, trained, layer.resumed
                evaluated = None if layer.was_switched else layer.evaluated
                self._recorder.rows.write_fact(TrainingModeKept, number, *kept, evaluated)
            if layer.initial is not None:
                self._recorder.rows.write_fact(InitialStatistics, number, layer.name, *layer.initial, layer.parameters)
            if layer.frozen_steps and not layer.has_resumed:
                what = layer.name, layer.site, layer.switched, layer.parameters, layer.frozen_steps, layer.trains_part
                self._recorder.rows.write_fact(FrozenStatistics, number, *what)

    def _layer(self, module: torch.nn.Module) -> _Layer | None:
        layer = self._layers.get(id(module))
        if layer is not None and layer.ref() is module:
            return layer
        if len(self._all) >= MOST:
            return None
        layer = self._layers[id(module)] = _Layer(weakref.ref(module), type(module).__name__)
        self._all.append(layer)
        return layer


def _end_waiting(layer: _Layer) -> None:
    """Notes a switch to training mode after which a layer has only run without a graph."""
    if layer.waiting and layer.switch is not None:
        layer.resumed = layer.switch.site
    layer.waiting = 0


def _depends_on_mode(module: torch.nn.Module) -> bool:
    if isinstance(module, _BATCH_NORM):
        return module.running_mean is not None
    return bool(getattr(module, "p", 0))


def _is_left_in_eval(layer: _Layer, optimizer: torch.optim.Optimizer) -> bool:
    """Returns whether a line evaluated a module around a layer, and a step trains other parameters of that module."""
    switch = layer.switch
    if switch is None or switch.training or switch.is_inner or not switch.evaluated:
        return False
    module, own = switch.module(), layer.ref()
    if module is None or own is None:
        return False
    if layer.is_reader and layer.holder is not None:  # a part that is trained again may be all that is to be trained
        return module is not own and not any(part.training for part in module.modules())
    if layer.is_reader:
        return True
    if module is own:
        return False
    other = {id(parameter) for parameter in module.parameters()} - {id(parameter) for parameter in own.parameters()}
    held = (parameter for group in optimizer.param_groups for parameter in group["params"])
    return any(id(parameter) in other and parameter.grad is not None for parameter in held)


def _trains_part(switch: _Switch | None, optimizer: torch.optim.Optimizer, known: dict[int, bool]) -> bool:
    """Returns whether a step trains a parameter of the module that a line switched; `known` is by the id of these."""
    module = None if switch is None else switch.module()
    if module is None:
        return False
    if id(module) not in known:
        own = set(map(id, module.parameters()))
        held = (parameter for group in optimizer.param_groups for parameter in group["params"])
        known[id(module)] = any(id(parameter) in own and parameter.grad is not None for parameter in held)
    return known[id(module)]


def _is_initial(
    mean: torch.Tensor | None, variance: torch.Tensor | None, weight: torch.Tensor | None, bias: torch.Tensor | None
) -> bool:
    """Returns whether running statistics are zeros and ones, as they are made, and weight and bias are not."""
    values = [each for each in (mean, variance, weight, bias) if each is not None]
    if mean is None or variance is None or not all(map(is_measurable, values)) or bool(mean.any()):
        return False
    has_other = (weight is not None and bool((weight != 1).any())) or (bias is not None and bool(bias.any()))
    return has_other and not bool((variance != 1).any())

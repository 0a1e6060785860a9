"""Puts PyTorch's own functions in the place of their patches between the recorded steps of a sampled run, and back.

To set an attribute of a class clears what Python knows of the attributes of all its subclasses, and each step that
follows is slower for a while. So such an attribute is set once, to a descriptor in C that a flag switches. Without the
compiled fast path, those of `Tensor` and `Module` keep their patches, and the others are set.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import TYPE_CHECKING

import torch
from torch.autograd.profiler import record_function

from tensorlens.tracer.isolation.patch import Patch, replacement_of
from tensorlens.tracer.patches.optimizer_state import HOOK
from tensorlens.tracer.recording import compiled
from tensorlens.tracer.recording.recorder import Recorder

if TYPE_CHECKING:
    from tensorlens.tracer.recording import _fast_path

Attribute = tuple[object, str]  # an object, and the name of one of its attributes

_OF_ARRAYS: Attribute = torch, "from_numpy"
_OF_MODULES: frozenset[Attribute] = frozenset(
    ((torch.autograd, "_engine_run_backward"), (torch.autograd, "backward"), (torch.autograd, "grad"), _OF_ARRAYS)
)
_OF_CLASSES: frozenset[Attribute] = frozenset(
    ((record_function, "__enter__"), (record_function, "__exit__"), (torch.optim.Optimizer, "zero_grad"))
)
_READ: Attribute = torch.Tensor, "backward"
_OPTIM = sys.modules[torch.optim.Optimizer.__module__]


class StepCounter:
    """Counts training steps: a hook of PyTorch after each `step()`. There is the same in C: `step_counter`."""

    def __init__(self, ended: Callable[[torch.optim.Optimizer], object]) -> None:
        self._ended = ended
        self.step = 1  # that is running
        self.last_counted = 0  # the last step that is only counted
        self.optimizer = 0  # the id of the one that ends the steps; 0: none is known
        self.others: set[int] = set()  # the ids of those that have stepped since
        self.is_resting = False  # PyTorch's own functions are called

    def __call__(self, optimizer: torch.optim.Optimizer, _args: object, _kwargs: object, /) -> None:
        number = id(optimizer)
        if self.step >= self.last_counted or not self.optimizer or number in self.others:
            self._ended(optimizer)
        elif number == self.optimizer:
            self.step += 1
            self.others.clear()
        else:
            self.others.add(number)


def step_counter(ended: Callable[[torch.optim.Optimizer], object]) -> StepCounter | _fast_path.StepCounter:
    """Makes the counter of a run. It calls `ended` with the optimizer at the end of a step that is not only counted."""
    if compiled.FastPath is None:
        return StepCounter(ended)
    from tensorlens.tracer.recording import _fast_path

    return _fast_path.StepCounter(ended)


class _StepHooks:
    """Takes the hook before optimizer steps out, and replaces the one after them."""

    def __init__(self, counter: Callable[..., None]) -> None:
        self._before, self._after = _OPTIM._global_optimizer_pre_hooks, _OPTIM._global_optimizer_post_hooks
        self._earlier = set(takewhile(lambda key: key != HOOK, self._before))
        self._taken = self._before.pop(HOOK, None), self._after.get(HOOK)
        if self._taken[1] is not None:
            self._after[HOOK] = counter

    def put_back(self) -> None:
        """Puts both hooks back, at their places among those of the program."""
        before, after = self._taken
        if before is not None:
            self._before[HOOK] = before
            for key in [key for key in self._before if key != HOOK and key not in self._earlier]:
                self._before.move_to_end(key)
        if after is not None:
            self._after[HOOK] = after


class RestoredFunctions:
    """The functions that PyTorch calls in each step, of one run, and the patches of them."""

    def __init__(
        self,
        recorder: Recorder,
        counter: StepCounter | _fast_path.StepCounter,
        patches: Iterable[Patch[Recorder]],
    ) -> None:
        self._recorder = recorder
        self._counter = counter
        self._switched = set() if isinstance(counter, StepCounter) else _OF_CLASSES | {_READ}
        chosen = _OF_MODULES | _OF_CLASSES | self._switched
        self._patches = {patch[:2]: patch for patch in patches if patch[:2] in chosen}
        self._originals = {at: vars(at[0]).get(at[1]) for at in self._patches}
        self._replacements: dict[Attribute, object] = {}
        self._hooks: _StepHooks | None = None
        self._out: list[Attribute] = []  # whose originals are in place

    def note_replacements(self) -> None:
        """Notes what the patches are, once they are installed."""
        for at in self._patches:
            patch = vars(at[0]).get(at[1])
            if patch is not None:
                self._replacements[at] = self._replacement(at, patch)

    def _replacement(self, at: Attribute, patch: object) -> object:
        """Returns the value of an attribute while steps are recorded: a patch, or a switch between a patch and the
        original, which it sets."""
        if isinstance(self._counter, StepCounter) or at not in self._switched:
            return patch
        from tensorlens.tracer.recording import _fast_path

        switch = _fast_path.Restored(self._counter, patch, self._originals[at])
        setattr(*at, switch)
        return switch

    def take_out(self) -> None:
        """Puts the originals in place, and the counter in that of the hook after each step. What the program has put
        in the place of a patch stays."""
        compiles = self._recorder.compiled_functions > 0  # what such code has seen must stay, or it is compiled again
        if not compiles:
            self._hooks = _StepHooks(self._counter)
        self._counter.is_resting = True
        for at, replacement in self._replacements.items():
            original = None if compiles and at == _OF_ARRAYS else self._originals[at]
            if original is not None and vars(at[0]).get(at[1]) is replacement:
                if at not in self._switched:
                    setattr(*at, original)
                self._out.append(at)

    def put_back(self) -> None:
        """Puts the patches in place. A function that the program has put there since is patched itself."""
        if self._hooks is not None:
            self._hooks.put_back()
            self._hooks = None
        self._counter.is_resting = False
        for at in self._out:
            current, is_switched = vars(at[0]).get(at[1]), at in self._switched
            if current is not None and current is not (self._replacements if is_switched else self._originals)[at]:
                self._originals[at] = current
                patch = replacement_of(self._patches[at], self._recorder, current)
                self._replacements[at] = self._replacement(at, patch)
            if not is_switched or current is None:
                setattr(*at, self._replacements[at])
        self._out.clear()

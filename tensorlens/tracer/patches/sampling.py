"""Records some of the training steps of a run, and counts the others.

A step ends when an optimizer's `step()` returns. If several optimizers take turns, each step ends with the same one:
the first that steps, until another steps twice in between. Before the first optimizer is made, a step ends with each
backward pass.

Between recorded steps the mode is off the stack of the thread that trains, and the functions that each step calls are
PyTorch's own again, so that it runs as without the lens.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
from collections.abc import Iterable
from typing import Any

import torch

from tensorlens.records.observations import ChosenSteps, RecordingSwitch
from tensorlens.records.step_choice import StepChoice
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch
from tensorlens.tracer.patches.restored_functions import RestoredFunctions, step_counter
from tensorlens.tracer.patches.uncounted_uses import is_earlier_apply
from tensorlens.tracer.recording.recorder import Recorder

_NO_PASS = -1  # what PyTorch calls the running backward pass if there is none


class SampledSteps:
    """Counts the steps of one run, and switches its recorder off and on between them."""

    def __init__(self, recorder: Recorder, choice: StepChoice) -> None:
        self._recorder = recorder
        self._choice = choice
        self._counter = step_counter(self.step_ended)
        self._next_chosen = 1.0  # no step before it is chosen
        self._is_due = False  # recording has to be switched, as soon as that is possible
        earlier = gc.get_objects()
        self._has_optimizer = any(issubclass(type(each), torch.optim.Optimizer) for each in earlier)
        self._keeps_unseen = any(map(is_earlier_apply, earlier))
        self._thread: int | None = threading.get_ident()  # None: recording switches no more
        self._taken: tuple[int, object] | None = None  # the stack below the mode when it was taken off
        self._restored: RestoredFunctions | None = None  # None: the patches stay in place
        self.is_resting = False  # the running step is not recorded, and no pass ends it
        recorder.rows.write_fact(ChosenSteps, choice.every, choice.first, choice.last)
        recorder.rows.write_fact(RecordingSwitch, 1, True, False)

    def will_install(self, patches: Iterable[Patch[Recorder]]) -> None:
        """Notes the patches of this run, before they are installed."""
        self._restored = RestoredFunctions(self._recorder, self._counter, patches)

    def has_installed(self) -> None:
        """Notes that the patches are installed."""
        if self._restored is not None:
            self._restored.note_replacements()

    def keep_patches(self) -> None:
        """Leaves the patches in place from here on: another recorder has patched the same functions, or is about to."""
        if self._restored is not None:
            self._restored.put_back()
            self._restored = None

    def optimizer_made(self) -> None:
        """Notes that the program has an optimizer: from here on, backward passes end no step."""
        self._has_optimizer = True

    def step_ended(self, optimizer: torch.optim.Optimizer) -> None:
        """Notes that an optimizer has stepped. To switch off, `switch` is called when the mode is back on the stack."""
        number, counter = id(optimizer), self._counter
        self._has_optimizer = True
        if number == counter.optimizer or number in counter.others or not counter.optimizer:
            counter.optimizer = number
            counter.others.clear()
            self._next()
        else:
            counter.others.add(number)
        if self._is_due and self._recorder.off:
            self.switch()

    def pass_ended(self) -> None:
        """Notes that a backward pass has ended. It ends a step in a program without an optimizer.

        The recorder is not on the stack here: PyTorch takes a mode off while it handles `backward`. See `switching`.
        """
        if not self._has_optimizer and _is_outside_passes():
            self._next()

    def _next(self) -> None:
        self._counter.step += 1
        if not self._recorder.off:
            self._is_due = not self._choice.has(self._counter.step)
        elif self._counter.step >= self._next_chosen:
            self._is_due = self._choice.has(self._counter.step)

    def switch(self) -> None:
        """Switches recording on or off if the running step needs it, as soon as the mode stack allows that.

        A `with` block of the program that has pushed a mode of its own ends by taking the topmost one off the stack:
        until then ours can neither be taken off below it nor put on top of it.
        """
        if not self._is_due or threading.get_ident() != self._thread or not _is_outside_passes():
            return
        with ErrorGuard(self._recorder, "a training step"):
            if self._recorder.off:
                self._on()
            else:
                self._take_off()

    def _take_off(self) -> None:
        recorder = self._recorder
        if not recorder.is_on_top() or recorder.steps.is_any_running():
            return
        recorder.off = recorder.paused = True
        mode = torch._C._pop_torch_function_stack()
        self._taken = torch._C._len_torch_function_stack(), mode
        self._is_due = False
        self._next_chosen = self._choice.next_after(self._counter.step)
        self._counter.last_counted = int(min(self._next_chosen - 1, sys.maxsize))
        if self._has_optimizer:
            self.is_resting = True
            if self._restored is not None:
                self._restored.take_out()
        recorder.rows.write_fact(RecordingSwitch, self._counter.step, False, False)

    def _on(self) -> None:
        if self._taken is None or torch._C._len_torch_function_stack() != self._taken[0]:
            return
        self._forget()
        self._put_back()
        self.is_resting = False
        if self._restored is not None:
            self._restored.put_back()
        self._recorder.off = self._recorder.paused = False
        self._is_due = False
        self._recorder.rows.write_fact(RecordingSwitch, self._counter.step, True, False)

    def _put_back(self) -> None:
        if self._taken is not None:
            torch._C._push_on_torch_function_stack(self._taken[1])
            self._taken = None

    def _forget(self) -> None:
        """Forgets what calls without a record may have changed."""
        recorder = self._recorder
        with torch._C.DisableTorchFunction():
            known = recorder.tensor_ids
            known.forget_unrecorded(recorder.leaves)
            if self._keeps_unseen:
                recorder.saved_tensors.note_uncounted()
            recorder.saved_tensors.forget()
            recorder.training.forget()
            if recorder.unwritten:
                waiting = {state[0] for state in recorder.unwritten}
                recorder.unwritten[:] = [recorder.state(tensor) for number, tensor in known.live() if number in waiting]

    def switching(self, function: Any) -> Function:
        """Makes a function that runs backward passes switch recording when it has returned, and the mode is back.

        The function may be what an outer recorder has put in its place: a descriptor.
        """

        @functools.wraps(function)
        def switched(*args: object, **kwargs: object) -> object:
            called = function if callable(function) else function.__get__(args[0], type(args[0]))
            result = called(*args[not callable(function) :], **kwargs)
            if self._is_due:
                self.switch()
            return result

        return switched

    def stop(self) -> None:
        """Leaves recording as it is from here on: in a forked child, nothing is recorded."""
        self._thread = None

    def end(self) -> None:
        """Notes how many steps there were. What is read afterwards is the state at the end of the run."""
        if self._recorder.off:
            with ErrorGuard(self._recorder, "the state at the end"):
                self._forget()
            self._put_back()
        self._recorder.rows.write_fact(RecordingSwitch, self._counter.step, not self._recorder.off, True)


def _is_outside_passes() -> bool:
    """Returns whether no backward pass is running in this thread: an optimizer may step in a hook."""
    return torch._C._current_graph_task_id() == _NO_PASS


def _switching(recorder: Recorder, function: Function) -> Function:
    return function if recorder.sampling is None else recorder.sampling.switching(function)


PATCHES: tuple[Patch[Recorder], ...] = (
    Patch(torch.autograd, "backward", _switching),
    Patch(torch.autograd, "grad", _switching),
)
"""Installed in sampled runs only. `Tensor.backward` has a patch of its own, in `optimizer_state`."""

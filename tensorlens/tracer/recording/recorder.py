"""Records a program: a `TorchFunctionMode` turns every torch call into a row.

It is built in layers, each of which uses only those before it: `TensorStates`, `ExceptionRows`, `SlowPath`,
`FastPathMode`, `PropertyReads`. What the mode does not see is reported by the patches.
"""

from __future__ import annotations

from _thread import RLock, get_ident
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tensorlens.journal.child_config import ComparedRun
from tensorlens.journal.row_buffer import plain
from tensorlens.journal.rows import WithinRow
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.module_tree import collect_tensors
from tensorlens.tracer.isolation.stack_room import ROOM
from tensorlens.tracer.recording.property_reads import PropertyReads
from tensorlens.tracer.recording.services import (
    Children,
    GradientSamples,
    Replicas,
    Sampling,
    Services,
    TrainingStatistics,
)
from tensorlens.tracer.recording.tensor_states import current_mode, version_of
from tensorlens.tracer.recording.thread_state import StepOfThread
from tensorlens.tracer.recording.user_callbacks import UserCallbacks

_modes, _mode_at = torch._C._len_torch_function_stack, torch._C._get_function_stack_at
__all__ = ["Recorder", "collect_tensors", "current_mode", "version_of"]


class Quiet:
    """Pauses a recorder for this thread, in a `with` block. A generator would take three times as long."""

    __slots__ = ("_recorder", "_thread")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._thread: int | None = None  # None: a block around this one has paused it

    def __enter__(self) -> None:
        thread = get_ident()
        if thread not in self._recorder.quiet_threads:
            self._thread = thread
            self._recorder.begin_quiet(thread)

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._recorder.end_quiet(self._thread)


class Recorder(PropertyReads):
    """Records every torch call made while it is active. `rows` is the only thing that it produces."""

    def __init__(self, own_files: tuple[str, ...], services: Callable[[Recorder], Services]) -> None:
        super().__init__(own_files)
        self._within = ""  # the step that rows are within, as the journal knows it: one of the first thread
        self._stepping = StepOfThread()
        self._changing = RLock()
        self.samples: GradientSamples | None = None  # in a run with `--reference`
        self.statistics: TrainingStatistics | None = None  # in a run with `--training`
        self.compared: ComparedRun | None = None  # in such a run
        self.compiled_functions = 0  # calls of `torch.compile`
        self.has_compiled = False  # compiled code has been called
        self.sampling: Sampling | None = None  # in a run that records some of its training steps
        self.replicas: Replicas | None = None  # in a rank of a distributed run
        self.off = False  # the running step is not recorded
        self.last_warning = ""
        self.valued: set[int] = set()  # sites whose plain values a warning has reported
        self.places: dict[int, tuple[object, tuple[int, str]]] = {}  # id -> (its mark, id of its module and the name)
        self.callbacks = UserCallbacks(self)
        self.children: Children | None = None  # None: only this process is traced
        self.is_rank = False  # this process is, or is about to be, a rank of a distributed run
        self.leaving: Callable[[int], None] = lambda status: None  # called before `os._exit`
        self.write_out: Callable[[], None] = lambda: None  # what is recorded so far, if the last time is a moment ago
        made = services(self)
        self.saved_tensors = made.saved_tensors
        self.training = made.optimizer_state
        self.steps = made.optimizer_steps
        if self.tensor_ids.in_c is not None:
            self.observes, self.below = self.tensor_ids.in_c.observes, self.tensor_ids.in_c.below  # type: ignore[method-assign]

    @property
    def within(self) -> str:
        """The optimizer step that is running in this thread, or ""."""
        return self._within if get_ident() == self.sites.shared.first else self._stepping.step

    @within.setter
    def within(self, step: str) -> None:
        if get_ident() != self.sites.shared.first:
            self._stepping.step = step
        elif step != self._within:
            with self._changing:
                self._within = step
                self.rows.write(WithinRow, step)

    @contextmanager
    def in_thread(self) -> Iterator[None]:
        """Records one of the program's threads."""
        self.rows.append_all, self.rows.put = self._append_of_thread, None
        with super().in_thread():
            yield

    def _append_of_thread(self, items: Iterable[object]) -> None:
        """Appends rows of any thread. Those of another thread than the first are within its own step."""
        if self.sites.shared.is_first_thread():
            self.rows.extend(items)
            return
        own = self._stepping.step
        with self._changing:
            if own != self._within:
                items = (plain(WithinRow(own)), *items, plain(WithinRow(self._within)))
            self.rows.extend(items)

    def after_fork(self) -> None:
        """Makes new locks in a forked child: a thread that is not there may have held the old ones."""
        self._changing, self.sites.adding, self.tensor_ids.adding = RLock(), RLock(), RLock()
        self.passes.renew_lock()
        ROOM.after_fork()

    def is_on_top(self) -> bool:
        """Returns whether the recorder is the innermost mode, so that it sees the next call of torch."""
        depth = _modes()
        return depth > 0 and _mode_at(depth - 1) is self.mode

    def is_observing(self) -> bool:
        """Returns whether the recorder sees the next call and records it on its fast path."""
        if self.is_paused or self.slow_path_reasons or (self.quiet_threads and self.paused):
            return False
        return self.is_on_top()

    def observes(self) -> bool:
        """Does the same as `is_observing`. The compiled fast path does it instead, if there is one."""
        return self.is_observing()

    def below(self, function: Function, /, *args: object, **kwargs: object) -> Any:
        """Makes a call with the mode, which is on top, off the stack. Unlike `aside`, patches go on recording.

        The compiled fast path does it instead, if there is one.
        """
        torch._C._pop_torch_function_stack()
        try:
            return function(*args, **kwargs)
        finally:
            torch._C._push_on_torch_function_stack(self.mode)

    def quiet(self) -> Quiet:
        """Records nothing of this thread inside a `with` block."""
        return Quiet(self)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Takes the mode off the stack if it is on top, and records nothing inside."""
        on_top = self.is_on_top()
        with self.quiet():
            if not on_top:
                yield
                return
            torch._C._pop_torch_function_stack()
            try:
                yield
            finally:
                torch._C._push_on_torch_function_stack(self.mode)

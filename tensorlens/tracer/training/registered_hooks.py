"""Counts the hooks that one line has registered on one tensor or module, after the 1st, 2nd, 4th pass and so on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import torch

from tensorlens.records.training import HookCount
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.user_callbacks import Watched, registration_of

MOST = 2_000  # facts of a run
_OF_TENSORS = ("_backward_hooks", "_post_accumulate_grad_hooks")
_OF_MODULES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class RegisteredHooks:
    """Looks at the hooks of a run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._left = MOST
        self._seen: set[int] = set()

    def look(self, passes: int) -> None:
        """Writes how often each line has its hook on a tensor or module: if it is more than once, or was."""
        counts = Counter([*self._of_tensors(), *self._of_modules()])
        for registration, count in sorted(counts.items()):
            if self._left and (count > 1 or registration in self._seen):
                self._left -= 1
                self._seen.add(registration)
                self._recorder.rows.write_fact(HookCount, passes, registration, count)

    def _of_tensors(self) -> Iterator[int]:
        for ref in self._recorder.leaves.values():
            tensor = ref()
            for name in _OF_TENSORS if tensor is not None else ():
                hooks = getattr(tensor, name, None)
                for hook in _values(hooks) if hooks else ():
                    if type(hook) is Watched:
                        yield registration_of(hook)

    def _of_modules(self) -> Iterator[int]:
        callbacks = self._recorder.callbacks
        for module in callbacks.live_modules():
            if isinstance(module, torch.nn.Module):
                for name in _OF_MODULES:
                    numbers = (callbacks.by_handle.get(key) for key in vars(module).get(name) or ())
                    yield from (number for number in numbers if number is not None)


def _values(hooks: object) -> Iterable[object]:
    """Returns the hooks as the engine finds them: the methods of the dictionary return the functions themselves."""
    return dict.values(hooks) if isinstance(hooks, dict) else ()

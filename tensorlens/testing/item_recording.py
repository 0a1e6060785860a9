"""Records one test: from before its fixtures are set up until its function has returned.

The patches stay until the test is torn down. A fixture that replaces a function of PyTorch, too, then restores what it
has found, in the right order.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tensorlens.journal.reader import Reader
from tensorlens.records.model import Trace
from tensorlens.session import Session
from tensorlens.tracer.entry.installation import Installation
from tensorlens.tracer.isolation.hidden_frames import strip
from tensorlens.tracer.patches.optimizer_state import HOOK
from tensorlens.tracer.patches.table import PATCHES
from tensorlens.tracer.recording.recorder import Recorder

RECORDING = pytest.StashKey["ItemRecording"]()
_MISSING = object()


class ItemRecording(Session):
    """Records one run of a test.

    With `sampled`, the gradients of each backward pass are kept, to compare two runs. With `copies`, autograd keeps
    copies of what it saves.
    """

    def __init__(self, item: pytest.Item, training: bool, sampled: bool = False, copies: bool = False) -> None:
        super().__init__(training=training)
        self._item, self._sampled, self._copies = item, sampled, copies
        self._copying = ExitStack()
        self._stopped: Installation | None = None
        self._patched: list[tuple[object, str, object]] = []

    def start(self) -> None:
        """Starts to record."""
        path, root = str(self._item.path), str(self._item.config.rootpath)
        self._active.acquire()
        self._begin(path)
        shown = os.path.relpath(path, root) if path.startswith(root + os.sep) else path
        self._script = self._reader.script = replace(self._script, path=shown, folder=root)
        self._patched = [(owner, name, vars(owner).get(name, _MISSING)) for owner, name, _ in PATCHES]
        if self._copies and self._installation is not None:
            from tensorlens.tracer.reference.saved_copies import saved_tensors_copied

            self._copying.enter_context(saved_tensors_copied(self._installation.recorder))

    @property
    def is_running(self) -> bool:
        return self._recorder is not None

    @property
    def recorder(self) -> Recorder:
        """The recorder, while the test is being recorded."""
        assert self._recorder is not None
        return self._recorder

    @property
    def reader(self) -> Reader:
        """The reader of the recording's rows."""
        return self._reader

    def stop(self, error: BaseException | None) -> None:
        """Ends the recording. `error` is the exception that ended the test, which loses the frames of this package."""
        self._copying.close()
        if error is not None:
            strip(error)
        self._end(dict(getattr(self._item, "funcargs", {})), error)

    def close(self) -> None:
        """Removes the patches. Functions that the program has replaced since the beginning stay replaced."""
        self._copying.close()
        if self._recorder is not None:
            self._end({}, None)
        if self._stopped is None:
            return
        changed = [
            (owner, name, now)
            for owner, name, ours in self._patched
            if (now := vars(owner).get(name, _MISSING)) is not ours and now is not _MISSING
        ]
        self._stopped.take_out()
        for owner, name, value in changed:
            setattr(owner, name, value)
        for owner, name, ours in self._patched:
            if isinstance(ours, OrderedDict):
                _copy_hooks(ours, vars(owner)[name])
        self._stopped = None

    def compared_trace(self, second: ItemRecording) -> Trace:
        """Returns the trace with the comparison of its gradients with those of a second run."""
        from tensorlens.records.reference import attach

        attach(self._reader, second._reader)
        return self._reader.trace()

    def _prepare(self, recorder: Recorder) -> None:
        if self._sampled:
            from tensorlens.tracer.reference.gradient_samples import GradientSamples

            recorder.samples = GradientSamples(recorder)

    def _uninstall(self, installation: Installation) -> None:
        installation.stop()
        self._stopped = installation


def _copy_hooks(ours: OrderedDict[object, object], original: OrderedDict[object, object]) -> None:
    """Gives PyTorch's table of hooks the ones that the program has registered in ours, and removes the others."""
    hooks = {key: hook for key, hook in ours.items() if key != HOOK}
    if original is not ours and hooks != dict(original):
        original.clear()
        original.update(hooks)

"""Represents the processes that a program may start, and imports what traces them when it starts one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlens.journal.process_folder import Following
from tensorlens.tracer.recording.recorder import Recorder

if TYPE_CHECKING:
    from tensorlens.tracer.entry.following import FollowedProcess


class Children:
    """Makes the `FollowedProcess` of the first process of a run, when it is first needed."""

    def __init__(self, following: Following, recorder: Recorder, own_files: tuple[str, ...]) -> None:
        self.everything = following.everything
        self._following, self._recorder, self._own_files = following, recorder, own_files
        self._made: FollowedProcess | None = None
        if self.everything:
            self.process.announce()

    @property
    def is_rank(self) -> bool:
        """Returns whether this process has joined the process group of a distributed run."""
        return self._made is not None and self._made.is_rank

    @property
    def has_some(self) -> bool:
        """Returns whether a process may have been started that is traced."""
        return self._made is not None

    @property
    def process(self) -> FollowedProcess:
        if self._made is None:
            from tensorlens.tracer.entry.following import FollowedProcess

            self._made = FollowedProcess(self._following, {"own_files": self._own_files})
            self._made.adopt(self._recorder)
        return self._made

    def ended(self, error: BaseException | None) -> None:
        """Writes how the program ended in a forked child that ran to the end of the program."""
        if self._made is not None:
            self._made.ended(error)

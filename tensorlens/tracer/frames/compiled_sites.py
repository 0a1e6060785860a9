"""Says what the compiled fast path does for this room: it walks frames, and remembers which code is a library's."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Protocol


class CompiledSites(Protocol):
    """The compiled fast path."""

    def forget_libraries(self) -> None:
        """Forgets which code is a library's: some of it has got sites."""

    def site(self, frame: FrameType | None, /) -> int | None:
        """Returns the site of the innermost user frame from `frame` outwards; None if it has none yet."""

    def place(self, frame: FrameType | None, /) -> tuple[tuple[CodeType, int], ...] | None:
        """Returns the place of the user's frames from `frame` outwards; None if some code is new."""

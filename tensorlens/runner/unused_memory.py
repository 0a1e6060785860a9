"""Returns memory to the system that this process has freed."""

from __future__ import annotations

from contextlib import suppress


def return_unused() -> None:
    """Returns what the C library keeps for later allocations. Does nothing where the library can't.

    It keeps up to a third of the memory of a process that frees large tables now and then.
    """
    import ctypes  # only a long run needs it

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

"""Asks the system about a process that is not a child of this one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tensorlens.paths import is_folder


def status_of(process: int) -> list[str]:
    """Returns what Linux says about a process, without its name: state, parent, ..., when it started (the 20th).

    Raises:
        OSError: there is no such process, or no such system.
    """
    return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()


def started_at(process: int) -> str:
    """Returns when a process started, as the system counts; "" if that is not known."""
    with suppress(OSError, IndexError):
        return status_of(process)[19]
    return ""


def is_running(process: int, started: str) -> bool:
    """Returns whether a process that started then has not ended. A number may be given to another process."""
    try:
        status = status_of(process)
    except ProcessLookupError:
        return False
    except OSError:
        return not is_folder(Path("/proc/self")) and _exists(process)
    return status[0] not in "ZX" and (not started or status[19] == started)


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def ranks_below(launcher: int) -> set[int]:
    """Returns the ranks whose processes, children of the launcher, run this command. Some may be starting."""
    ranks = set()
    for process in _children(launcher):
        with suppress(OSError, IndexError):
            folder = Path(f"/proc/{process}")
            runs_command = b"tensorlens" in (folder / "cmdline").read_bytes()
            number = _variable(b"RANK", (folder / "environ").read_bytes())
            if runs_command and number.isdigit() and status_of(process)[0] not in "ZX":
                ranks.add(int(number))
    return ranks


def _children(process: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            if status_of(int(folder.name))[1] == str(process):
                found.append(int(folder.name))
    return found


def _variable(name: bytes, environment: bytes) -> bytes:
    return next((each[len(name) + 1 :] for each in environment.split(b"\0") if each.startswith(name + b"=")), b"")

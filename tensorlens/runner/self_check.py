"""Checks an unknown release of PyTorch once: does the lens see there what it relies on? A cache folder has the answer.

A small program runs under the lens (`tracer/entry/self_check_program.py`), and its trace has to show certain facts. A
release of PyTorch that nobody has tried may hide some of them: then every report says which, in one line. The releases
of `docs/versions.md` need no check.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tensorlens.paths import PACKAGE
from tensorlens.records.version import __version__
from tensorlens.runner.child_run import ChildRun, RunOptions, exited_script, run_child
from tensorlens.runner.targets import Target

if TYPE_CHECKING:  # imported after the child has been started
    from tensorlens.records.model import Trace

PROGRAM = PACKAGE / "tracer" / "entry" / "self_check_program.py"
MEASURED = PACKAGE / "runner" / "measured_releases.txt"  # `make versions` writes it
_VERSION = re.compile(r"__version__ = '([\d.]+)")
REASON = "not all of this PyTorch is seen: nothing is known of {}"
_SECONDS = 120
_ROOMS = ("isolation", "frames", "recording", "saved_tensors", "patches", "entry")


def unseen_in_this_torch() -> str:
    """Returns the reason of a gap if the installed PyTorch hides something from the lens, else "".

    Runs the check if the release is not known, and there is no answer yet but a folder to keep it in.
    """
    with suppress(OSError, ValueError, RuntimeError):  # no home folder, or one that takes no file
        torch = importlib.util.find_spec("torch")
        if torch is None or torch.origin is None:
            return ""
        release = Path(torch.origin).with_name("version.py")
        answer = None if _is_measured(release) else _answer_file(release)
        if answer is None:
            return ""
        if not answer.exists():
            answer.parent.mkdir(parents=True, exist_ok=True)
            found = check()
            if found is None:
                return ""
            _keep(answer, found)
        unseen = json.loads(answer.read_text(encoding="utf-8"))["unseen"]
        return REASON.format(", ".join(map(str, unseen))) if unseen else ""
    return ""


def check() -> list[str] | None:
    """Runs the program of the check. Returns what its trace lacks; None if the program was stopped before its end."""
    with tempfile.TemporaryDirectory(prefix="tensorlens-check-") as folder:
        script = Path(folder, "self_check.py")
        script.write_bytes(PROGRAM.read_bytes())
        with open(os.devnull, "wb") as nowhere:
            options = RunOptions(timeout=_SECONDS, output=nowhere.fileno())
            reader, exited, follower = run_child(Target("file", str(script)), ChildRun(options))
            trace = follower.trace(exited_script(reader, exited))
    return None if trace.script.outcome in ("timeout", "interrupted") else unseen_in(trace)


def unseen_in(trace: Trace) -> list[str]:
    """Returns what the trace of the check's program does not show."""
    shown: dict[str, Callable[[Trace], bool]] = {
        "calls of torch": lambda trace: _called(trace, "Tensor.exp"),
        "changes in place": lambda trace: _writes(trace, "Tensor.add_"),
        "gradients": _has_gradients,
        "saved tensors that were overwritten": lambda trace: _failed(trace, "saved-tensor-modified-inplace"),
        "graphs that were freed": lambda trace: _failed(trace, "backward-through-freed-graph"),
        "writes past version counters": lambda trace: bool(trace.inspection.stale),
        "custom Functions": lambda trace: _called(trace, "Square.apply") and _ran(trace, "backward"),
        "checkpoints": lambda trace: _entered(trace, "checkpoint") == 2 == _entered(trace, "recomputation"),
        "hooks of tensors": lambda trace: _ran(trace, "tensor hook"),
        "hooks of nodes": lambda trace: _ran(trace, "node hook"),
        "hooks of modules": lambda trace: _ran(trace, "module backward hook"),
        "hooks of saved tensors": lambda trace: _entered(trace, "saved_tensors_hooks") == 1,
        "optimizer steps": lambda trace: _writes(trace, "SGD.step") and _writes(trace, "Adam.step"),
        "modes of autograd": _has_modes,
        "transforms of functions": lambda trace: _called(trace, "func.grad") and _entered(trace, "func.grad") == 1,
    }
    return [what for what, is_shown in shown.items() if not is_shown(trace)]


def _called(trace: Trace, op: str) -> bool:
    return any(getattr(event, "op", "") == op for event in trace.events)


def _writes(trace: Trace, op: str) -> bool:
    return any(getattr(event, "op", "") == op and getattr(event, "writes", ()) for event in trace.events)


def _has_gradients(trace: Trace) -> bool:
    return any(change.after for event in trace.events for change in getattr(event, "gradients", ()))


def _failed(trace: Trace, code: str) -> bool:
    """Returns whether a backward pass failed with a message that has this code, at a tensor that was found."""
    return any(failure.kind == code and any(saved.node for saved in failure.saved) for failure in trace.failures)


def _entered(trace: Trace, region: str) -> int:
    return sum(getattr(event, "name", "") == region and getattr(event, "entering", False) for event in trace.events)


def _ran(trace: Trace, kind: str) -> bool:
    registrations = trace.callbacks.registrations
    return any(registrations[run.registration].kind == kind for run in trace.callbacks.runs)


def _has_modes(trace: Trace) -> bool:
    causes = {getattr(event, "cause", "") for event in trace.events}
    return {"no_grad", "inference_mode"} <= causes and _entered(trace, "autocast") == 1


def _is_measured(release: Path) -> bool:
    version = _VERSION.search(release.read_text(encoding="utf-8"))
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return version is not None and f"{version[1]} {python}" in MEASURED.read_text(encoding="utf-8").splitlines()


def _answer_file(release: Path) -> Path | None:
    """Returns the file of the answer for the installed PyTorch; None if the home folder is not known."""
    parts = [release, PROGRAM, *(PACKAGE / "tracer" / room for room in _ROOMS)]
    states = [(str(part), status.st_mtime_ns, status.st_size) for part in parts for status in (part.stat(),)]
    key = hashlib.sha256(repr((__version__, sys.version, states)).encode()).hexdigest()[:16]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return folder / "tensorlens" / f"torch-{key}.json" if folder.is_absolute() else None


def _keep(answer: Path, unseen: list[str]) -> None:
    """Writes the answer so that another process never reads half of it."""
    with tempfile.NamedTemporaryFile("w", dir=answer.parent, delete=False, encoding="utf-8") as file:
        json.dump({"unseen": unseen}, file)
    Path(file.name).replace(answer)

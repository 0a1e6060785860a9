"""Says how PyTorch releases differ for the tests: they quote one release, that of `constraints.txt`.

In another one a mistake may raise nothing, or use a function that is not there yet. A test of it is skipped then, and
the reason is a line of `docs/versions.md`. Plain Python decides that, without the lens.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from support.warm import Ran, Warm
from tensorlens.records.error_messages import entry

_QUOTED = re.search(r"^torch==(\S+)$", (Path(__file__).parents[2] / "constraints.txt").read_text(), re.MULTILINE)
RELEASE = version("torch").partition("+")[0]
IS_QUOTED = _QUOTED is not None and _QUOTED[1].partition("+")[0] == RELEASE
"""Whether this is the release whose words the pages quote."""
_LAST = re.compile(r"^(?:AttributeError|ImportError|ModuleNotFoundError|TypeError): .*", re.MULTILINE)
_ABSENT = re.compile(
    r"has no attribute|cannot import name|No module named|unexpected keyword argument|incompatible function arguments"
)

_OTHERWISE = {
    "grad-inputs-mapping": "PyTorch takes no mapping, and refuses it as any value that is no tensor",
    "leaf-modified-inplace--slice-all-assignment": "PyTorch calls it a write to a view of the leaf",
    "saved-tensor-modified-inplace--set-underscore": "a saved tensor does not lead to the tensor that `set_` changed",
}
"""What earlier releases do otherwise, by script or code: looked at only where a test fails."""


def in_this_release(text: str) -> str:
    """Returns a text of the documents with the installed release of PyTorch where it names the quoted one."""
    return text if _QUOTED is None else re.sub(rf"(?<=torch ){re.escape(_QUOTED[1])}\b", RELEASE, text)


def imports_compute() -> bool:
    """Returns whether the modules that a first optimizer imports call functions of PyTorch."""
    program = """
import torch
class Counted(torch.overrides.TorchFunctionMode):
    calls = 0
    def __torch_function__(self, func, types, args=(), kwargs=None):
        Counted.calls += 1
        return func(*args, **(kwargs or {}))
with Counted():
    import torch._dynamo
raise SystemExit(Counted.calls > 0)
"""
    return not IS_QUOTED and subprocess.run([sys.executable, "-c", program], check=False).returncode == 1


def difference(script: Path, code: str, warm: Warm) -> str:
    """Returns why a script can't make its mistake in this release, or "".

    Args:
        script: the program.
        code: of the mistake that it makes.
        warm: runs it without the lens.
    """
    if IS_QUOTED:
        return ""
    known = entry(code)
    assert known is not None
    ran = warm.plain(script)
    if known.kind == "error" and ran.returncode == 0:
        return "PyTorch raises nothing"
    if known.kind == "warning" and "Warning" not in ran.stderr:
        return "PyTorch warns of nothing"
    if ran.stderr.endswith("\nAssertionError\n"):
        return "PyTorch raises an AssertionError without a message"
    for last in _LAST.findall(ran.stderr)[-1:]:
        if _ABSENT.search(last) and not any(re.search(pattern, last) for pattern in known.patterns):
            return str(last)
    return _OTHERWISE.get(script.stem, "") or _OTHERWISE.get(code, "")


def skip_if_different(script: Path, code: str, warm: Warm) -> None:
    """Skips a test that has failed, if the script can't make its mistake in this release."""
    reason = difference(script, code, warm)
    if reason:
        pytest.skip(f"torch {RELEASE}: {reason}")


def is_quiet(ran: Ran, script: Path, warm: Warm) -> bool:
    """Returns whether a run ended well and printed no warning; in other releases, none that plain Python lacks."""
    return (ran.returncode, ran.stderr) == (0, "") or (
        not IS_QUOTED and (ran.returncode, ran.stderr) == (0, warm.plain(script).stderr)
    )

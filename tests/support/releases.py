"""Says how PyTorch releases differ for the tests: they quote one release, that of `constraints.txt`.

In another one a mistake may raise nothing, or use a function that is not there yet. A test of it is skipped then, and
the reason is a line of `docs/versions.md`. Plain Python decides that, without the lens.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from support.warm import Ran, Warm

from tensorlens.records.error_messages import entry

_QUOTED = re.search(r"^torch==(\S+)$", (Path(__file__).parents[2] / "constraints.txt").read_text(), re.MULTILINE)
_RELEASE = version("torch").partition("+")[0]
IS_QUOTED = _QUOTED is not None and _QUOTED[1].partition("+")[0] == _RELEASE
"""Whether this is the release whose words the pages quote."""
_MISSING = re.compile(r"(AttributeError|ImportError|ModuleNotFoundError|TypeError): .*", re.DOTALL)
_ABSENT = re.compile(r"has no attribute|cannot import name|No module named|unexpected keyword argument|incompatible function arguments")


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
    last = ran.stderr.strip().rpartition("\n")[2]
    if _MISSING.match(last) and _ABSENT.search(last) and not any(re.search(p, last) for p in known.patterns):
        return last
    return ""


def skip_if_different(script: Path, code: str, warm: Warm) -> None:
    """Skips a test that has failed, if the script can't make its mistake in this release."""
    reason = difference(script, code, warm)
    if reason:
        pytest.skip(f"torch {_RELEASE}: {reason}")


def is_quiet(ran: Ran, script: Path, warm: Warm) -> bool:
    """Returns whether a run ended well and printed no warning; in other releases, none that plain Python lacks."""
    return (ran.returncode, ran.stderr) == (0, "") or (
        not IS_QUOTED and (ran.returncode, ran.stderr) == (0, warm.plain(script).stderr)
    )

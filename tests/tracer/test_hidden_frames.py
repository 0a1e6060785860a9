"""Tracebacks look as they do without the lens."""

from __future__ import annotations

import traceback

import pytest

from tensorlens.paths import PACKAGE
from tensorlens.tracer.isolation.hidden_frames import strip

OURS, USERS = str(PACKAGE / "module.py"), "/home/user/program.py"
INTERRUPTED = """
def call(function):
    try:
        function()
    except Exception:
        raise KeyboardInterrupt
"""
RAISED = "def function(): raise LookupError('first')"


def interrupted(raised_in: str) -> KeyboardInterrupt:
    """Returns a Ctrl-C that arrives while code of the package handles an exception of this file."""
    names: dict[str, object] = {}
    exec(compile(INTERRUPTED, OURS, "exec"), names)
    exec(compile(RAISED, raised_in, "exec"), names)
    program = compile("call(function)", USERS, "exec")
    with pytest.raises(KeyboardInterrupt) as caught:
        exec(program, names)
    return caught.value


@pytest.mark.parametrize(("raised_in", "tracebacks"), [(OURS, 1), (USERS, 2)])
def test_an_exception_that_the_package_handles_is_no_context_of_the_programs(raised_in: str, tracebacks: int) -> None:
    error = interrupted(raised_in)
    strip(error)
    text = "".join(traceback.format_exception(error))
    assert text.count("Traceback") == tracebacks
    assert ("LookupError: first" in text) == (raised_in == USERS)
    assert str(PACKAGE) not in text

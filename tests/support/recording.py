"""Records functions in the tests' own process, with the public `tensorlens.trace()`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import tensorlens
from tensorlens.records.invariants import validate
from tensorlens.records.model import Trace
from tensorlens.records.trace_file import dumps, loads


def traced(function: Callable[[], object]) -> Trace:
    """Returns the trace of a call, which may raise. It must be valid, and equal after saving and loading."""
    session = tensorlens.trace()
    with contextlib.suppress(Exception), session:
        function()
    trace = session.trace()
    assert validate(trace) == []
    assert loads(dumps(trace)) == trace
    return trace

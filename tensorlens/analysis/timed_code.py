"""Says whether a line is in code that measures time, whose results nothing has to use."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.naming.name_words import words_of_last
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span

_CLOCKS = frozenset("time perf_counter perf_counter_ns time_ns process_time monotonic elapsed_time record".split())
_WORDS = frozenset("bench benchmark time timed timing timeit profile profiled speed latency warmup warm".split())


def is_timed(facts: TraceIndex, span: Span) -> bool:
    """Returns whether the function around a line reads a clock, or has a name that says that it is timed."""
    function = function_around(facts, span.file, span.line)
    if function is None:
        return False
    reads = any(isinstance(node, ast.Call) and called_name(node) in _CLOCKS for node in ast.walk(function))
    return reads or not _WORDS.isdisjoint(words_of_last(function.name))

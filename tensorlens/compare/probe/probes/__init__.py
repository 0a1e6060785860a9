"""Defines the probes: each row of a comparison is one function. To add a row, add a function.

A probe gets a `Bench`, applies the operand to fresh inputs, and returns one `Answer`, or None if its question does not
apply. An exception that it raises becomes its answer. Its docstring is the question that `--list-probes` shows. The
modules import no torch: a probe reaches torch through the bench. The rows have the order of the functions. A test
computes each cell again: add the new one to `tests/support/recomputed.py`.
"""

from tensorlens.compare.probe.probes.registry import PROBES, Probe

from tensorlens.compare.probe.probes import result, graph, writing, cost  # isort: skip  (the order of the rows)

__all__ = ["PROBES", "Probe", "cost", "graph", "result", "writing"]

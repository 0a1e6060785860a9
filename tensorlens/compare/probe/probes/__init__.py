"""The probes: every row of a comparison is one function here. To add a row, add a function; nothing else changes.

A probe gets a `Bench`, applies the operand to fresh inputs as often as it likes and gives one `Answer`; None where the
question does not arise. What it raises is its answer. Its docstring is the question, as `--list-probes` shows it. The
modules import no torch: a probe reaches it through the bench. Rows come in the order of the functions.
"""

from tensorlens.compare.probe.probes import graph, result, writing
from tensorlens.compare.probe.probes.registry import PROBES, Probe

from tensorlens.compare.probe.probes import cost  # isort: skip

__all__ = ["PROBES", "Probe", "cost", "graph", "result", "writing"]

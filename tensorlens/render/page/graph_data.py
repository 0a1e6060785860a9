"""Puts the recorded graph into the page's data."""

from __future__ import annotations

from typing import Any

from tensorlens.analysis.moments.graph_parts import freed, graph_cuts, graph_edges, graph_ends, graph_nodes
from tensorlens.analysis.moments.run_moments import Moments
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.module_rows import names_of_parameters, owner_of
from tensorlens.diagnostics.shared.wording import op_text
from tensorlens.records.model import Call
from tensorlens.render.page.source_data import Sources
from tensorlens.render.page.strings import Strings, columns

_MODES = {"no_grad": "gradient recording is off", "inference": "inference mode is on"}


def graph_data(facts: TraceIndex, moments: Moments, strings: Strings, sources: Sources) -> dict[str, Any]:
    """Returns the nodes, edges, cuts, ends and frees.

    A node is a call that recorded nodes of autograd; `module` is the object that holds the parameters it reads.
    """
    parameters = names_of_parameters(facts.trace, facts.names)
    nodes = list(graph_nodes(facts, moments))
    places = {node.at for node in nodes}
    return {
        "nodes": columns(
            "moment tensor name module",
            (
                (node.at, node.tensor, strings.number(node.name), strings.number(_module(moments, node.at, parameters)))
                for node in nodes
            ),
        ),
        "edges": columns(
            "to tensor source", ((edge.to, edge.tensor, edge.source) for edge in graph_edges(facts, moments, places))
        ),
        "cuts": columns(
            "moment tensor result text switch",
            (
                (
                    cut.at, cut.tensor, cut.result, strings.number(_why(moments, cut.at, cut.mode)),
                    sources.site(cut.switch),
                )
                for cut in graph_cuts(facts, moments)
            ),
        ),
        "ends": columns("to tensor", ((end.to, end.tensor) for end in graph_ends(facts, moments, places))),
        "freed": [[each.at, *each.nodes] for each in freed(facts, moments)],
    }  # fmt: skip


def _module(moments: Moments, at: int, parameters: dict[int, str]) -> str:
    call = moments.items[at].what
    if not isinstance(call, Call):
        return ""
    names = (parameters[access.tensor] for access in call.inputs if access.tensor in parameters)
    return "".join(owner_of(next(names, ""))) if parameters else ""


def _why(moments: Moments, at: int, mode: str) -> str:
    """Says why a path ends at a moment."""
    call = moments.items[at].what
    if not isinstance(call, Call):
        return ""
    return _MODES.get(mode) or f"the result of {op_text(call.op)} has no graph"

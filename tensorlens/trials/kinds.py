"""Names the kinds of interventions, and the roles of the labels that each tries."""

from __future__ import annotations

from typing import Literal

Kind = Literal["keep_copies", "retain_graph", "record_gradients", "skip_write"]
KEEP: Kind = "keep_copies"
RETAIN: Kind = "retain_graph"
RECORD: Kind = "record_gradients"
SKIP: Kind = "skip_write"
CUTS = ("graph_cut_here", "grad_mode_off_here")
ROLES: dict[Kind, tuple[str, ...]] = {
    KEEP: ("saved_here",),
    RETAIN: ("freed_here",),
    RECORD: CUTS,
    SKIP: ("modified_here",),
}

"""Names the parts that lines of a script play in a cause, and puts each in words for the examples on the pages."""

from __future__ import annotations

ROLE_NAMES = {
    "accumulated_here": "the gradient is added here",
    "base_made_here": "the base is made here",
    "called_here": "called here",
    "cleared_here": "cleared here",
    "compiled_here": "compiled here",
    "flag_changed_here": "the flag is changed here",
    "freed_here": "the graph is freed here",
    "function_defined_here": "the function is defined here",
    "grad_mode_off_here": "gradient recording is off here",
    "graph_built_here": "recorded here",
    "graph_cut_here": "the graph is cut here",
    "hook_registered_here": "the hook is registered here",
    "leaf_made_here": "the leaf is made here",
    "mode_entered_here": "the mode is entered here",
    "modified_here": "changed in place here",
    "needed_here": "needed here",
    "nonleaf_made_here": "computed here: not a leaf",
    "observed_here": "seen here",
    "optimizer_made_here": "the optimizer is made here",
    "queued_here": "work is queued on the GPU here",
    "rejected_here": "rejected here",
    "replaced_here": "replaced here",
    "returned_here": "returned here",
    "saved_here": "saved for backward here",
    "shared_here": "memory is shared from here on",
    "state_changed_here": "the state is changed here",
    "value_made_here": "the value is made here",
    "view_made_here": "the view is made here",
}

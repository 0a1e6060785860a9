"""Says how much a trace has where a run has more."""

LISTED_ITEMS = 16  # of a list, tuple or dict: how many get names
LISTED_STATES = 2_000  # live tensors whose states are kept when the run ends
MAX_COLLECTIVES = 10_000  # of one rank: the first ones are kept

"""Search for modes, seeds and cached results of another time."""

"""Search for constants that a graph should have reached."""

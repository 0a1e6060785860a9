"""Search for parameters that do not train, or that move by other means than a gradient."""

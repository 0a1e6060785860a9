"""Search for samples that reach the model with other values, labels or weights than they should."""

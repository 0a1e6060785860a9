"""Search for gradients that are added up, replaced, scaled or lost."""

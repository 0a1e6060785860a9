"""Search for sequences whose steps, padding, positions or masks are taken for others."""

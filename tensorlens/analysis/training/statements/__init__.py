"""Search for statements and conditions without effect."""

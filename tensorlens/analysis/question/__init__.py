"""Finds the facts that answer a question about one tensor: which one it is, who uses its memory, where it leads."""

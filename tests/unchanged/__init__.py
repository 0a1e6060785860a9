"""Compares programs with and without the lens, to prove that the lens changes nothing."""

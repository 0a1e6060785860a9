"""Judges the advice: applies the first help of a report to a program, and compares the gradients that it then uses."""

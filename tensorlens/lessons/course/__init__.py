"""The course: goes through the lessons in order, step by step or as a quiz. Imports no torch."""

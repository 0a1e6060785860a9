"""The lessons as a course: in which order they are read, step by step, and as a quiz. Imports no torch."""

"""Generates programs, files and texts with hypothesis, and states what must be true for each."""

from __future__ import annotations

PARTS = 16  # tests that `make fuzz` divides its cases among
THOROUGH = {"programs": 1_200, "trace files": 3_200, "journals": 3_200, "command lines": 3_200, "sources": 3_200}
EVERYDAY = {"programs": 40, "trace files": 100, "journals": 100, "command lines": 120, "sources": 100}
HOLDS = {
    "programs": "some thirty statements each, of every sort that uses autograd: output, exceptions, exit status and "
    "warnings are the plain run's, the trace is sound, every form of the report can be made of it and is plain text",
    "trace files": "real ones, damaged in bytes, structure and values: refused in one line, or sound and shown",
    "journals": "real ones, cut and written over: what came before is in the report, which says that it breaks off",
    "command lines": "any text as argument or pasted message: an exit code of 0, 1 or 2, and no control character",
    "sources": "any characters in source, labels, edits and messages: shown in all forms, none of them obeyed",
}

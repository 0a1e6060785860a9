"""Answers what was true at each moment of a run: what happened, the states of tensors, their memory, the graph.

A *moment* is an event of the trace, a failure, or a write that no version counter shows. Its position counts from 0.
"""

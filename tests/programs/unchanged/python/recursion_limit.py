"""Reads and sets Python's recursion limit, also to what it cannot be."""
import inspect
import sys

import torch


def below(frames):
    if frames:
        return below(frames - 1)
    try:
        sys.setrecursionlimit(100)
    except RecursionError as error:
        print(str(error)[:40])


print(sys.getrecursionlimit(), inspect.signature(sys.getrecursionlimit), sys.setrecursionlimit.__name__)
for limit in (0, -1, 2**31, 2**31 - 1, "a", 1.5, 10**6, True, 250):
    try:
        sys.setrecursionlimit(limit)
        print(limit, sys.getrecursionlimit())
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        print(limit, type(error).__name__, str(error)[:40])
below(150)
x = torch.ones(2, requires_grad=True)
y = x * 2
y.register_hook(lambda gradient: print(sys.getrecursionlimit()))
y.sum().backward()

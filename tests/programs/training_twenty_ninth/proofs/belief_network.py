import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = [("mean = signal.mean()", "mean = signal.detach().mean()"), ("var = signal.var()", "var = signal.detach().var()")]


def nodes(tensor):
    """Number of graph nodes that the tensor keeps alive."""
    seen, stack = set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        stack.extend(parent for parent, _ in node.next_functions)
    return len(seen)


programs = {}
for label, edits in (("wrong", []), ("fixed", FIX)):
    program = run("belief_network", *edits, as_main=False)
    for steps in (20, 80):
        net, trace, signal = program["main"](steps=steps)
        programs[label, steps] = (nodes(signal.mean), nodes(signal.var), trace)
        print(label, steps, programs[label, steps][:2], trace[-1])
short, long = programs["wrong", 20], programs["wrong", 80]
assert short[0] > 200 and short[1] > 200
for i in range(2):  # each step adds the same number of nodes: 60 further steps hold 4 times as many
    assert 3.8 < long[i] / short[i] < 4.2
assert programs["fixed", 80][:2] == (0, 0)
assert programs["fixed", 80][2] == programs["wrong", 80][2]  # the numbers are those of the repaired run

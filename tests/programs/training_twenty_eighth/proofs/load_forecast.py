import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

import gc

name = "load_forecast"
repair = ("def validate(", "@torch.no_grad()\ndef validate(")


def nodes(tensor):
    """Number of the nodes of the graph that hangs on the tensor."""
    seen, stack = set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(following for following, _ in node.next_functions)
    return len(seen)


def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def growth(*edits):
    """Memory (MiB) that each further validation of the same model leaves behind when its error is kept."""
    program = run(name, *edits, as_main=False)
    torch.manual_seed(0)
    model, progress = program["DayAhead"](), program["Curve"](4, 12)
    past, ahead = torch.randn(163, program["PAST"], 1), torch.randn(163, program["AHEAD"])
    for _ in range(3):
        progress.add(program["validate"](model, past, ahead))
    start = resident()
    for _ in range(20):
        progress.add(program["validate"](model, past, ahead))
    return (resident() - start) / 20


wrong, right = growth(), growth(repair)
print("MiB per validation:", wrong, right)
assert wrong > 1.0 and right < 0.2 * wrong

result = run(name)
errors = result["progress"].errors
assert len(errors) > 10 and all(e.grad_fn is not None for e in errors)
count = nodes(errors[0])
print("nodes still held by the error of the first epoch:", count)
assert count > 20

fixed = run(name, repair)["progress"].errors
assert all(e.grad_fn is None for e in fixed)
assert torch.equal(torch.stack(errors).detach(), torch.stack(fixed))

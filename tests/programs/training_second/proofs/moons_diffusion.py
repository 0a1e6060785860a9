import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "moons_diffusion"

was = run(NAME)
assert all(h.grad_fn is not None for h in was["history"])
for h in was["history"]:
    grads = torch.autograd.grad(h, list(was["model"].parameters()), retain_graph=True, allow_unused=True) if h is was["history"][-1] else None
stack, seen, alive = [h.grad_fn for h in was["history"]], set(), 0
while stack:
    node = stack.pop()
    if node is None or node in seen:
        continue
    seen.add(node)
    if node.name() == "AddmmBackward0":
        alive += node._saved_mat1.numel()
    stack.extend(n for n, _ in node.next_functions)
assert alive > 12 * 256 * 64, alive
now = run(NAME, ("def validate", "@torch.no_grad()\ndef validate"))
assert all(h.grad_fn is None for h in now["history"])
assert torch.equal(flat(was["model"]), flat(now["model"]))

print(f"proved: {NAME}")

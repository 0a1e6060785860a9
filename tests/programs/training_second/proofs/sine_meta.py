import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "sine_meta"

was = run(NAME, capture=["main"])["net"]
torch.manual_seed(0)
first = run(NAME, as_main=False)["make_net"]
torch.manual_seed(0)
assert torch.equal(flat(was), flat(first())) and all(p.grad is None for p in was.parameters())
fix = (
    "            query_loss.backward()\n",
    "            grads = torch.autograd.grad(query_loss, list(learner.parameters()))\n"
    "            for p, g in zip(net.parameters(), grads):\n"
    "                p.grad = g if p.grad is None else p.grad + g\n",
)
assert rel(flat(run(NAME, fix)["net"]), flat(was)) > 0.01

print(f"proved: {NAME}")

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "force_field"

was = flat(run(NAME)["model"])
zero = flat(run(NAME, ("force_weight=10.0", "force_weight=0.0"))["model"])
assert torch.equal(was, zero) or rel(was, zero) < 1e-5
now = run(NAME, ("retain_graph=True", "create_graph=True"))
assert rel(was, flat(now["model"])) > 0.02
pos, energy, forces = now["data"]
r = run(NAME)
assert not r["energy_and_forces"](r["model"], pos)[1].requires_grad
assert now["energy_and_forces"](now["model"], pos)[1].requires_grad

print(f"proved: {NAME}")

import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat, rel

fix = ("        loss.backward()\n        self.opt.step()\n        self.opt.zero_grad()\n", "        self.opt.zero_grad()\n        loss.backward()\n        self.opt.step()\n")
a, b = run("dock_planner"), run("dock_planner", fix)


def error(r):
    s, u, n = r["Dock"](seed=77).sample(512)
    with torch.no_grad():
        return (r["planner"].model(s, u) - n).pow(2).mean().item()


assert error(a) > 3 * error(b), (error(a), error(b))
one = ("rounds=60", "rounds=1")
left = sum(p.grad.abs().sum().item() for p in run("dock_planner", one)["planner"].model.parameters())
assert left > 1 and rel(flat(a["planner"].model), flat(b["planner"].model)) > 0.1
print("proved: dock_planner")

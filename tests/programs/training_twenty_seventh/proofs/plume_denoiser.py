import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = ("self.saved = [p.detach() for p in parameters]", "self.saved = [p.detach().clone() for p in parameters]")
a, b = run("plume_denoiser"), run("plume_denoiser", fix)


def moved(r):
    """How far a store / copy_to / restore cycle moves the raw weights."""
    lin = torch.nn.Linear(4, 4)
    avg = r["WeightAverage"](lin.parameters(), 0.9)
    with torch.no_grad():
        lin.weight += 1
    before = lin.weight.detach().clone()
    avg.store(lin.parameters()); avg.copy_to(lin.parameters()); avg.restore(lin.parameters())
    return (lin.weight - before).abs().max().item()


print("moved by the swap", moved(a), moved(b))
assert moved(a) > 0.9 and moved(b) == 0
gap = [max((p - s).abs().max().item() for p, s in zip(r["net"].parameters(), r["average"].shadow)) for r in (a, b)]
print("raw weights minus average at the end", gap)
assert gap[0] == 0 and gap[1] > 1e-3
print("val", a["history"][-3:], b["history"][-3:])
assert a["history"][-1] > b["history"][-1] * 1.03

import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat
import torch

fix = ("torch.optim.SGD(model.parameters(), lr=lr)", "torch.optim.SGD(learner.parameters(), lr=lr)")


def facts(r):
    torch.manual_seed(0)
    start = r["SineNet"]()
    moved = (flat(r["model"]) - flat(start)).norm().item()
    x, y = r["SineTask"]().sample(20)
    learner, losses = r["adapt"](r["model"], x, y, 0.02, 6)
    return moved, (flat(learner) - flat(r["model"])).norm().item(), losses[0], losses[-1]


w, f = facts(run("reptile_sinusoid")), facts(run("reptile_sinusoid", fix))
print("(meta model moved, learner moved, first, last loss): wrong", w, "fixed", f)
assert w[0] == 0.0 and w[1] == 0.0 and w[2] == w[3]
assert f[0] > 0.1 and f[1] > 1e-3 and f[3] < f[2]

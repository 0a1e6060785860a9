import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import torch
w, f = run("bbvi_counts"), run("bbvi_counts", ("q.rsample(", "q.sample("))
print(w.output, f.output)

def score_gradient(r, repeats=400):
    """mean surrogate gradient for loc, at the start, against the score-function formula by hand"""
    torch.manual_seed(0)
    guide = r["MeanField"](6)
    model = r["PoissonModel"](r["x"], r["y"])
    base = r["RunningBaseline"]()
    base.value, base.spread = -900.0, 300.0
    got, by_hand = torch.zeros(6), torch.zeros(6)
    base.advantage = lambda reward: ((reward + 900.0) / 300.0).clamp(-5, 5)
    s = torch.nn.functional.softplus(guide.rho).detach()
    for k in range(repeats):
        torch.manual_seed(k)
        guide.zero_grad()
        r["surrogate"](guide, model, base, 32)[0].backward()
        got += guide.loc.grad / repeats
        torch.manual_seed(k)
        with torch.no_grad():
            q = guide.q()
            z = q.sample((32,))
            adv = base.advantage(model.log_joint(z) - q.log_prob(z).sum(-1))
            by_hand -= (adv[:, None] * (z - guide.loc) / s ** 2).mean(0) / repeats
    return got, by_hand
g, h = score_gradient(w)
g2, h2 = score_gradient(f)
print(g, h, g2)
assert g.abs().max() < 1e-4 and h.abs().max() > 0.1
assert rel(g2, h2) < 1e-3
import numpy as np
assert np.mean(f["trace"][-50:]) - np.mean(w["trace"][-50:]) > 50

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer
import torch

fix = ("        self.optimizer.load_state_dict(self.initial)", "        self.optimizer = torch.optim.Adam(configure(self.model), lr=self.optimizer.defaults['lr'])")
bad, good = run("shift_tent"), run("shift_tent", fix)


def moved(r):
    t = r["tent"]
    pairs = list(zip(t.model.named_parameters(), r["net"].named_parameters()))
    return sum((a - b).abs().sum().item() for (n, a), (_, b) in pairs)


def covered(r):
    return any(in_optimizer(p, r["tent"].optimizer) for p in r["tent"].model.parameters())


print("summed change of the adapted parameters", moved(bad), moved(good))
print("optimizer holds a parameter of the adapted model", covered(bad), covered(good))
for k in bad["summary"]:
    print(k, "wrong", bad["summary"][k], "repaired", good["summary"][k])
assert moved(bad) == 0.0 and moved(good) > 0.1 and not covered(bad) and covered(good)
mean = lambda r: sum(v[1] for v in r["summary"].values()) / len(r["summary"])
ent = lambda r: sum(v[3] for v in r["summary"].values())
print("mean accuracy", mean(bad), mean(good), "summed last entropies", ent(bad), ent(good))
assert ent(good) < 0.8 * ent(bad)

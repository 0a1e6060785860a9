import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
fix = ("beat = self.beats[i]\n", "beat = self.beats[i].clone()\n")
bad = run("lead_rhythm", capture=("main",))
good = run("lead_rhythm", fix, capture=("main",))


def drift(res):  # how far the stored training recordings moved from what was simulated
    original, _ = res["simulate"](640, torch.Generator().manual_seed(31))
    return rel(res.locals["main"]["train"].beats, original)


db, dg = drift(bad), drift(good)
ab, ag = bad.locals["main"]["accuracy"], good.locals["main"]["accuracy"]
print("drift of stored data", db, "->", dg, " valid accuracy", ab, "->", ag)
assert db > 0.5 and dg == 0.0
assert ag > ab + 0.02

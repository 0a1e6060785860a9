import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import numpy as np

FIX = ("img = self.images[i]\n", "img = self.images[i].copy()\n")


def measure(r):
    m = r.locals["main"]
    clean, _ = r["synthesize"](600, np.random.default_rng(21))   # the same draw that main makes first
    return float(np.abs(m["train_set"].images - clean).mean()), m["acc"]


bad = measure(run("ferrite_patches", capture=("main",)))
good = measure(run("ferrite_patches", FIX, capture=("main",)))
print("drift of the stored images, test acc:", bad, good)
assert good[0] == 0.0 and bad[0] > 0.1
assert good[1] - bad[1] > 0.05

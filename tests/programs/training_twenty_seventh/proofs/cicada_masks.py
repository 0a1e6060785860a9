import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import numpy as np


def damage(r):
    """Share of the stored training values that differ from the freshly made data."""
    fresh = r["CallDataset"](400, seed=21)
    return float(np.mean(np.stack(fresh.specs) != np.stack(r["train_set"].specs)))


bad = run("cicada_masks")
good = run("cicada_masks", ("spec = self.specs[i]\n", "spec = self.specs[i].copy()\n"))
print(bad.output, good.output, damage(bad), damage(good), bad["val_acc"], good["val_acc"])
assert damage(bad) > 0.7 and damage(good) == 0.0
assert good["val_acc"] > bad["val_acc"] + 0.05

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import numpy as np

FIX = ("torch.from_numpy(self.images[i])", "torch.from_numpy(self.images[i]).clone()")
out = {}
for key, edits in (("bad", ()), ("good", (FIX,))):
    res = run("retina_speckle", *edits, capture=("main",))
    loc = res.locals["main"]
    fresh, labels = res["synth_patches"](160, np.random.default_rng(4))
    assert np.array_equal(labels, loc["train_labels"])
    change = np.abs(loc["train_set"].images - fresh).mean()
    out[key] = change, loc["test_loss"], loc["test_acc"]
print(out)
# the stored training images are overwritten epoch after epoch, and the result is worse
assert out["good"][0] == 0 and out["bad"][0] > 0.2
assert out["good"][1] < 0.8 * out["bad"][1]

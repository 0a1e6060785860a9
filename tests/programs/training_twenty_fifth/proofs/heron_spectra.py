import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import numpy as np, torch

torch.set_num_threads(1)
bad = run("heron_spectra")
good = run("heron_spectra", ("n_mels, n_frames = feats.shape", "feats = feats.clone()\n        n_mels, n_frames = feats.shape"))
clean = bad["CallDataset"](240, seed=1)
zeros = lambda r: float(np.mean([(f == 0).mean() for f in r["train_set"].feats]))
print(bad.output, good.output, zeros(bad), zeros(good))
assert zeros(bad) > 0.7 and zeros(good) < 0.001  # most of the cached training features are gone at the end
assert all(np.array_equal(a, b) for a, b in zip(good["train_set"].feats, clean.feats))
assert not any(np.array_equal(a, b) for a, b in zip(bad["train_set"].feats, clean.feats))
acc = lambda r: r["evaluate"](r["model"], r["val_loader"])
print(acc(bad), acc(good))
assert acc(good) > acc(bad) + 0.05

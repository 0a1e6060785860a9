import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

NAME = "grain_spectra"
LINE = "            slow.mul_(self.decay).add_(fast, alpha=1 - self.decay)\n"
REPAIR = (LINE, LINE + "        for slow, fast in zip(self.network.buffers(), model.buffers()):\n            slow.copy_(fast)\n")

written = run(NAME)
fixed = run(NAME, REPAIR)


def norms(model):
    return [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm1d)]


for layer, live in zip(norms(written["average"].network), norms(written["model"])):
    assert layer.num_batches_tracked.item() == 0 and live.num_batches_tracked.item() > 0
    assert (layer.running_mean == 0).all() and (layer.running_var == 1).all()
    assert (live.running_mean.abs() > 1e-3).any()
for layer in norms(fixed["average"].network):
    assert layer.num_batches_tracked.item() > 0
assert rel(flat(written["average"].network), flat(fixed["average"].network)) == 0.0
print(written["last_accuracy"], written["averaged_accuracy"], fixed["averaged_accuracy"])
assert written["averaged_accuracy"] < fixed["averaged_accuracy"] - 0.15
assert fixed["averaged_accuracy"] > 0.85

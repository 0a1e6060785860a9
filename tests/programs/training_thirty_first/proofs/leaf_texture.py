import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

name = "leaf_texture"
as_written = run(name)
repaired = run(name, (
    "            average.mul_(decay).add_(current, alpha=1 - decay)\n",
    "            average.mul_(decay).add_(current, alpha=1 - decay)\n"
    "        for kept, current in zip(self.module.buffers(), model.buffers()):\n"
    "            kept.copy_(current)\n"))


def norms(net):
    return [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]


for m in norms(as_written["average"].module):  # still the values of a new layer
    assert m.num_batches_tracked == 0 and (m.running_mean == 0).all() and (m.running_var == 1).all()
for m in norms(as_written["model"]):
    assert m.num_batches_tracked > 0 and m.running_mean.abs().sum() > 0


def score(result):
    images, kinds = result["make_leaves"](1000, torch.Generator().manual_seed(1))
    return result["accuracy"](result["average"].module, images, kinds), result["accuracy"](result["model"], images, kinds)


wrong, right = score(as_written), score(repaired)
print(wrong, right)
assert right[0] > 0.9
assert wrong[0] < 0.7
assert rel(flat(as_written["average"].module), flat(repaired["average"].module)) == 0  # same weights, other buffers

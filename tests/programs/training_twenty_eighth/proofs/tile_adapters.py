import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

repair = ("        super().train(mode)\n        with", "        if mode == self.training:\n            return self\n        super().train(mode)\n        with")
wrong, right = run("tile_adapters"), run("tile_adapters", repair)


def drift(r):
    r["model"].train()  # unfolded: the frozen weights are what they were at the start
    out = []
    for a, b in zip(r["model"].blocks, r["pretrained"].blocks):
        assert not a.qkv.weight.requires_grad
        out += [rel(a.qkv.weight, b.qkv.weight), rel(a.fc1.weight, b.fc1.weight)]
    return max(out)


def gap(r):
    x = torch.randn(16, 1, 16, 16)
    with torch.no_grad():
        one = r["model"].train()(x)
        two = r["model"].eval()(x)
        three = r["model"].eval()(x)  # a second call of eval()
    return rel(two, one), rel(three, one)


d = drift(wrong), drift(right)
print("drift of the frozen weights", d)
assert d[0] > 0.05 and d[1] < 1e-4
g = gap(wrong), gap(right)
print("outputs, eval against train", g)
assert g[0][1] > 0.05 and g[1][1] < 1e-3 and g[1][0] < 1e-3

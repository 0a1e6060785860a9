import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fix = ("        for epoch in range(self.epochs):\n", "        for epoch in range(self.epochs):\n            self.model.train()\n")
spy = ("        logits = self.model(image)\n        loss = ", "        MODES.append(self.model.training)\n        logits = self.model(image)\n        loss = ")
a, b = [], []
bad, good = run("lesion_segmentation", spy, inject={"MODES": a}), run("lesion_segmentation", fix, spy, inject={"MODES": b})
tracked = lambda r: {m.num_batches_tracked.item() for m in r["segmenter"].model.modules() if isinstance(m, torch.nn.BatchNorm2d)}
print(sum(a), len(a), sum(b), tracked(bad), tracked(good))


def staleness(r):
    """How far the stored statistics are from those of the data that reach the first batch norm."""
    net = r["segmenter"].model.net
    torch.manual_seed(9)
    with torch.no_grad():
        h = net[0](r["scans"](300)[0])
    mean, var = h.mean((0, 2, 3)), h.var((0, 2, 3))
    return ((net[1].running_mean - mean).abs() / var.sqrt()).mean().item(), (net[1].running_var / var).log().abs().mean().item()


print(staleness(bad), staleness(good))
assert len(a) == 70 and sum(a) == 10 and all(b)
assert tracked(bad) == {10} and tracked(good) == {70}
assert staleness(bad)[1] > 3 * staleness(good)[1]

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = ("        return self.state\n", "        return self.state.copy()\n")
bad, good = run("ferry_docking"), run("ferry_docking", fix)


def unmoved(glob):
    return sum(torch.equal(i[0], i[3]) for i in glob["memory"].items) / len(glob["memory"].items)


def distinct(glob):
    return len({tuple(i[0].tolist()) for i in glob["memory"].items}) / len(glob["memory"].items)


print("share of transitions that stand still", unmoved(bad), unmoved(good))
print("share of distinct observations", distinct(bad), distinct(good))
print("return", bad["mean_return"], good["mean_return"], "docked", bad["dock_rate"], good["dock_rate"])
assert unmoved(bad) == 1.0 and unmoved(good) == 0.0
assert distinct(bad) < 0.2 and distinct(good) > 0.95
assert good["mean_return"] > bad["mean_return"] + 2 and good["dock_rate"] > bad["dock_rate"] + 0.3

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

KEEP = ("            self.model.quantise()\n            loss", "            real = [p.detach().clone() for p in self.model.parameters()]\n            self.model.quantise()\n            loss")
BACK = ("            loss.backward()\n", "            loss.backward()\n            for p, r in zip(self.model.parameters(), real):\n                p.data = r\n")
EVAL = ("        self.model.quantise()\n        x, y", "        real = [p.detach().clone() for p in self.model.parameters()]\n        self.model.quantise()\n        x, y")
EVAL2 = ("        return (self.model(x).argmax(1) == y).float().mean().item()", "        acc = (self.model(x).argmax(1) == y).float().mean().item()\n        for p, r in zip(self.model.parameters(), real):\n            p.data = r\n        return acc")
START = ("job = QATRun()\n", "job = QATRun()\nstart = job.model.fc2.weight.detach().clone()\n")


def level(w):
    return torch.round(7 * w / w.abs().amax(dim=1, keepdim=True))


bad = run("qat_gesture", START)
good = run("qat_gesture", START, KEEP, BACK, EVAL, EVAL2)
same = [(level(r["job"].model.fc2.weight.detach()) == level(r["start"])).float().mean().item() for r in (bad, good)]
print(bad["final"], good["final"], same)
assert bad["final"] + 0.15 < good["final"]
assert same[0] > 0.9 and same[0] > same[1] + 0.1

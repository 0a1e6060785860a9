import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch
w = run("adapter_finetune", capture=("main",)).locals["main"]
r = run("adapter_finetune", ("        if mode:\n            self.merged = False", "        if mode:\n            if self.merged:\n                self.weight.data -= self.delta().detach()\n            self.merged = False"), capture=("main",)).locals["main"]
def drift(l):
    l["model"].train()  # the wrong one stays merged, the repaired one unmerges
    return [rel(l["model"][i].weight, l["base"][i].weight) for i in (0, 2, 4)]
fw = [rel(w["model"][i].weight - w["model"][i].delta().detach(), w["base"][i].weight) for i in (0, 2, 4)]  # less the last merge
fr = drift(r)
print("drift of the frozen weights", fw, fr, "validation", w["history"][-1], r["history"][-1])
assert not w["model"][0].weight.requires_grad and min(fw) > 0.5 and max(fr) < 1e-4
assert r["history"][-1] > w["history"][-1] + 0.03

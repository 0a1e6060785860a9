import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

SAVE = ("loss = fit(model, model.head", "saved = {k: v.clone() for k, v in model.backbone.state_dict().items()}\nloss = fit(model, model.head")
a = run("leaf_finetune", SAVE)
b = run("leaf_finetune", SAVE, ("        model.train()\n", "        model.train()\n        model.backbone.train(model.backbone.conv1.weight.requires_grad)\n"))
now = a["model"].backbone.state_dict()
for k in now:
    if "running" in k:
        assert not torch.allclose(now[k], a["saved"][k], rtol=0.05, atol=0.01), k
    elif "num" not in k:
        assert torch.equal(now[k], a["saved"][k])
fixed = b["model"].backbone.state_dict()
assert all(torch.equal(fixed[k], b["saved"][k]) for k in fixed)
acc = lambda r: float(r.output.split()[-1])
assert acc(b) - acc(a) > 0.1, (acc(a), acc(b))
print("proved: leaf_finetune")

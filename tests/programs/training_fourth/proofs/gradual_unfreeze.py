import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

bad = run("gradual_unfreeze", capture=("main",)).locals["main"]
good = run("gradual_unfreeze", (
    '            print("backbone unfrozen")',
    '            optimizer.add_param_group({"params": list(model.backbone.parameters()), "lr": 5e-3})'), capture=("main",)).locals["main"]


def moved(loc):
    return max((loc["before"][k] - v).abs().max().item() for k, v in loc["model"].backbone.state_dict().items())


print("moved", moved(bad), moved(good), "acc", bad["test_acc"], good["test_acc"])
params = list(bad["model"].backbone.parameters())
assert all(p.requires_grad and p.grad is not None and p.grad.abs().sum() > 0 for p in params)
assert not any(in_optimizer(p, bad["optimizer"]) for p in params)
assert moved(bad) == 0.0 and moved(good) > 0.01
assert good["test_acc"] > bad["test_acc"] + 0.08

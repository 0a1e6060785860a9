import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("(weight * per_claim)", "(weight.unsqueeze(1) * per_claim)")
wrong = run("claim_cost")
right = run("claim_cost", FIX)
print(wrong["test_mse"], right["test_mse"], wrong["test_bias"], right["test_bias"])


def gradient(result, weight):
    model = result["model"]
    model.zero_grad()
    result["weighted_loss"](model(wrong["x"]), wrong["y"], weight).backward()
    return flat_grad(model).clone()


weight = wrong["weight"]
shuffled = weight[torch.randperm(len(weight), generator=torch.Generator().manual_seed(0))]
per = (wrong["model"](wrong["x"]) - wrong["y"]) ** 2
assert (weight * per).shape == (len(weight), len(weight))
# which claim has which weight does not matter to the program as written
assert rel(gradient(wrong, weight), gradient(wrong, shuffled)) < 1e-3
assert rel(gradient(right, weight), gradient(right, shuffled)) > 0.3
assert right["test_mse"] < 0.9 * wrong["test_mse"]
assert abs(right["test_bias"]) < 0.5 * abs(wrong["test_bias"])

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
bad = run("quarry_posterior")
good = run("quarry_posterior", ("{k: w.detach() for", "{k: w.detach().clone() for"))


def spread(res):
    return torch.stack([s["out.weight"] for s in res["samples"]]).std(0).mean().item()


def model_std(res):
    _, std = res["sampler"].predict(res["gap_x"])
    return (std ** 2 - res["cfg"].noise_std ** 2).clamp(min=0).sqrt().mean().item()


print("spread of samples", spread(bad), "->", spread(good), " model std in the gap", model_std(bad), "->", model_std(good))
print("cored", bad["cored"], "->", good["cored"], " gap", bad["gap"], "->", good["gap"])
# the chain itself is the same: only what was kept of it differs
assert all(torch.equal(a, b) for a, b in zip(bad["sampler"].net.parameters(), good["sampler"].net.parameters()))
assert spread(bad) < 1e-6 < 1e-2 < spread(good)
assert model_std(bad) < 1e-3 and model_std(good) > 0.03
assert good["gap"][1] < bad["gap"][1] - 0.05

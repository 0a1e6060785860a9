import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch
import torch.nn.functional as F

FIX = ("    for row in x[chosen]:\n", "    for row in x[chosen]:\n        net.zero_grad()\n")

wrong = run("pump_seasons")
right = run("pump_seasons", FIX)


def estimates(program):
    """The function of the program and the mean of squared gradients, on the same net, samples and labels."""
    net, x = program["net"], program["seasons"][2].x
    torch.manual_seed(0)
    got = program["diagonal_fisher"](net, x)
    torch.manual_seed(0)
    chosen = torch.randperm(len(x))[: program["FISHER_SAMPLES"]]
    true = {n: torch.zeros_like(p) for n, p in net.named_parameters()}
    for row in x[chosen]:
        logits = net(row.unsqueeze(0))
        label = program["Categorical"](logits=logits.detach()).sample()
        grads = torch.autograd.grad(F.cross_entropy(logits, label), list(net.parameters()))
        for n, g in zip(true, grads):
            true[n] += g.pow(2) / len(chosen)
    join = lambda d: torch.cat([v.flatten() for v in d.values()])
    return join(got), join(true)


got, true = estimates(right)
assert rel(got, true) < 1e-3
got, true = estimates(wrong)
ratio = (got.sum() / true.sum()).item()
print("inflation of the Fisher information", ratio)
assert ratio > 10 and rel(got, true) > 5

print("autumn right after training", wrong["learned"]["autumn"], right["learned"]["autumn"])
assert wrong["learned"]["autumn"] < 0.5 < 0.75 < right["learned"]["autumn"]
assert right["mean"] > wrong["mean"] + 0.03

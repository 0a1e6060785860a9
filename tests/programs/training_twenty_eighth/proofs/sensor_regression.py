import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("{name: p.data for", "{name: p.data.clone() for")
wrong, right = run("sensor_regression"), run("sensor_regression", FIX)


def check(result):
    """Whether the cycle apply / restore gives the training weights back; whether the store is the model's memory."""
    model, average = result["model"], result["average"]
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1)
    before = flat(model)
    average.apply()
    shared = all(average.stored[n].data_ptr() == p.data_ptr() for n, p in model.named_parameters())
    average.restore()
    return torch.equal(before, flat(model)), shared


assert check(wrong) == (False, True)
assert check(right) == (True, False)
print(wrong["history"][-1], right["history"][-1])
assert right["history"][-1][1] < 0.8 * wrong["history"][-1][1]
assert min(h[2] for h in right["history"]) < 0.8 * min(h[2] for h in wrong["history"])

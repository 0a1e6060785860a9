import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = ('target = model.revin(y, "norm")', "target = (y - model.revin.mean) / model.revin.std")
bad, good = run("turbine_feeder"), run("turbine_feeder", fix)


def honest(r):
    """What a forecast made from the lookback alone scores."""
    model, total, n = r["model"], 0.0, 0
    with torch.no_grad():
        for x, y in r["valid_loader"]:
            total += (model.revin(model(x), "denorm") - y).pow(2).sum().item()
            n += y.numel()
    return total / n


print(bad["final"], good["final"], honest(bad), honest(good))
assert abs(good["final"] - honest(good)) < 1e-5
assert bad["final"] < 0.7 * honest(bad)
# the wrong score knows the future level: with the target moved by +5, the "forecast" follows
with torch.no_grad():
    x, y = next(iter(bad["valid_loader"]))
    base = bad["evaluate"](bad["model"], [(x, y)])[1]
    moved = bad["evaluate"](bad["model"], [(x, y + 5)])[1]
    moved_good = good["evaluate"](good["model"], [(x, y + 5)])[1]
print(base, moved, moved_good)
assert abs(moved - base) < 1e-3 and moved_good > 10

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

WATCH = ("    optimizer.step()\n    scheduler", "    before = next(model.parameters()).detach().clone()\n    optimizer.step()\n    moves.append(((next(model.parameters()) - before).abs().median().item(), optimizer.param_groups[0]['lr']))\n    scheduler")
HIST = ("history = []\n", "history = []\nmoves = []\n")
FIX1 = ('lr, (beta1, beta2) = self.defaults["lr"], self.defaults["betas"]', 'beta1, beta2 = self.defaults["betas"]')
FIX2 = ("        for group in self.param_groups:\n", '        for group in self.param_groups:\n            lr = group["lr"]\n')
bad = run("load_forecast", WATCH, HIST)
good = run("load_forecast", WATCH, HIST, FIX1, FIX2)
print(bad["moves"][0], bad["moves"][-1], good["moves"][0], good["moves"][-1], bad["mse"], good["mse"])
# the step is still the full 3e-3 when the schedule has come down to almost nothing
assert bad["moves"][-1][0] > 2e-3 and bad["moves"][-1][1] < 1e-5
assert good["moves"][-1][0] < 1e-5
assert bad["mse"] > 1.5 * good["mse"]

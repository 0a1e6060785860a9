import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

FIX = ("chain(self.encoder.parameters(), self.decoder.parameters())",
       "list(chain(self.encoder.parameters(), self.decoder.parameters()))")
RECORD = ("        self.optimizer.step()\n",
          "        norms.append(sum(p.grad.pow(2).sum().item() for g in self.optimizer.param_groups for p in g['params']) ** 0.5)\n"
          "        self.optimizer.step()\n")
before, after = [], []
wrong = run("meter_forecast", RECORD, inject={"norms": before})
right = run("meter_forecast", RECORD, FIX, inject={"norms": after})
limit = wrong["MAX_NORM"]
print(max(before), max(after), wrong["test_error"], right["test_error"])
assert list(wrong["forecaster"].params) == []
assert sum(n > 1.01 * limit for n in before) > 20 and max(before) > 5 * limit
assert max(after) < 1.01 * limit
assert right["test_error"] < 0.8 * wrong["test_error"]

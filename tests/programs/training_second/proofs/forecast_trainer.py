import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, run

KEEP = ("            self.schedule.step()\n", "            self.schedule.step()\n            rates.append(self.optimizer.param_groups[0]['lr'])\n")
ra, rb = [], []
a = run("forecast_trainer", KEEP, inject={"rates": ra})
b = run("forecast_trainer", KEEP, ('self.optimizer.defaults["lr"] = self.value()', 'self.optimizer.param_groups[0]["lr"] = self.value()'), inject={"rates": rb})
assert set(ra) == {2e-2} and len(set(rb)) > 50 and rb[-1] < 1e-4
assert not torch.allclose(flat(a["trainer"].model), flat(b["trainer"].model), atol=1e-3)
last = lambda r: float(r.output.split()[-1])
assert last(b) < last(a), (last(a), last(b))
print("proved: forecast_trainer")

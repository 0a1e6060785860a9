import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

bad = run("lantern_triage")
good = run("lantern_triage", ("self.pe[: x.size(0)]", "self.pe[: x.size(1)].transpose(0, 1)"))
print(bad["held_mse"], good["held_mse"])
codes = torch.randint(0, 20, (8, 12))
flip = codes.flip(1)
with torch.no_grad():
    order_bad = (bad["model"](codes) - bad["model"](flip)).abs().max().item()
    order_good = (good["model"](codes) - good["model"](flip)).abs().max().item()
    same = bad["model"](codes[:1].expand(8, -1))
print("effect of reversing:", order_bad, order_good, "spread over equal rows:", same.std().item())
assert order_bad < 1e-4 and order_good > 0.1      # the wrong one cannot see the order of the events
assert same.std() > 1e-3                            # and its answer depends on the row in the batch
assert good["held_mse"] < 0.4 * bad["held_mse"]

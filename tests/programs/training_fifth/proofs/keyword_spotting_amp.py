import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

bad = run("keyword_spotting_amp")
good = run("keyword_spotting_amp", ("        norm = torch", "        self.scaler.unscale_(self.optimizer)\n        norm = torch"))
print(bad["acc"], good["acc"], bad["trainer"].norms[:2], good["trainer"].norms[:2])
torch.manual_seed(1)
start = flat(bad["SpotNet"](4))
moved = [(flat(r["trainer"].model) - start).norm().item() for r in (bad, good)]
print(moved)
assert moved[0] < 0.02 * moved[1]
assert bad["acc"] < 0.5 and good["acc"] > 0.8
assert min(bad["trainer"].norms) > 100 > max(good["trainer"].norms)

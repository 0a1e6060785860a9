import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat
import torch
w = run("two_view_bootstrap")
f = run("two_view_bootstrap", ("                slow[key] = value\n", "                slow[key] = value\n        self.target.load_state_dict(slow)\n"))
assert torch.equal(flat(w["model"].target), flat(w["start"]))
assert not torch.equal(flat(w["model"].online), flat(w["start"]))
assert (flat(f["model"].target) - flat(f["start"])).norm() > 0.1

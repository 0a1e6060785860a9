import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

w = run("instance_memory_bank")
f = run("instance_memory_bank", ("        entries.div_(entries.norm(dim=1, keepdim=True))\n",
                                 "        entries.div_(entries.norm(dim=1, keepdim=True))\n        self.bank[idx] = entries\n"))
dw = (w["memory"].bank - w["initial_bank"]).norm().item()
df = (f["memory"].bank - f["initial_bank"]).norm().item()
print("bank moved: wrong", dw, "fixed", df)
assert dw == 0.0 and df > 1.0

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import numpy as np

bad = run("ppo_point_mass")
good = run("ppo_point_mass", ("return torch.from_numpy(self.state)\n", "return torch.from_numpy(self.state.copy())\n"))
ob, og = bad["batch"]["obs"].view(40, 16, 4), good["batch"]["obs"].view(40, 16, 4)
assert (ob == ob[-1]).all(), "all stored observations are one and the same"
assert og.std(0).mean() > 0.05
mb, mg = np.mean(bad["history"][-10:]), np.mean(good["history"][-10:])
print(mb, mg)
assert mg > 0.7 * mb and mg > mb + 0.15

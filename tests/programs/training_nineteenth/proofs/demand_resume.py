import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import flat, in_optimizer, run
import torch

bad = run("demand_resume")
good = run("demand_resume", (', assign=True)', ')'))
m, o = bad["second"].model, bad["second"].optimizer
n_in = sum(in_optimizer(p, o) for p in m.parameters())
moved = (flat(m) - flat(bad["first"].model)).abs().max().item()
moved_good = (flat(good["second"].model) - flat(good["first"].model)).abs().max().item()
print(n_in, moved, moved_good, bad["final_mae"], good["final_mae"])
assert n_in == 0 and moved == 0 and moved_good > 0.01
assert bad["final_mae"] > 1.3 * good["final_mae"]

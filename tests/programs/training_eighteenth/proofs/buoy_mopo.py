import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat
import torch

FIX = [("copy.deepcopy(template) for _ in", "template() for _ in"), ("Ensemble(Dynamics(), MEMBERS)", "Ensemble(Dynamics, MEMBERS)")]
bad, good = run("buoy_mopo"), run("buoy_mopo", *FIX)
for n, r in (("bad", bad), ("good", good)):
    m = r["model"].members
    d = max((flat(m[0]) - flat(x)).abs().max().item() for x in m)
    print(n, "largest difference between members", d, "spread", r["inside"], r["outside"], "return", r["gained"])
    r["d"] = d
assert bad["d"] == 0 and good["d"] > 0.1
assert bad["outside"] < 1e-5 and good["outside"] > 1e-2

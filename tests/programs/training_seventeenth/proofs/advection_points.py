import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

wrong = run("advection_points")
fixed = run("advection_points", ('weights.parameters(), "lr": 1e-2}', 'weights.parameters(), "lr": 1e-2, "maximize": True}'))
const = run("advection_points", ('weights.parameters(), "lr": 1e-2}', 'weights.parameters(), "lr": 0.0}'))
for name, w in (("wrong", wrong), ("maximize", fixed), ("constant", const)):
    r, i = w["weights"]()
    print(name, "rel_l2", w["rel_l2"], "mean weights", r.mean().item(), i.mean().item())
r, i = wrong["weights"]()
assert r.max() < 0.69 and i.max() < 3.04  # every weight fell below its start
r2, i2 = fixed["weights"]()
assert r2.mean() > 0.7 and i2.mean() > 3.05
assert fixed["rel_l2"] < 0.7 * wrong["rel_l2"] and const["rel_l2"] < wrong["rel_l2"]

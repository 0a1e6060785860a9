import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

r = run("load_forecast")
fixed = run("load_forecast", ("        opt.step()\n", "        opt.step()\n        if masks is not None:\n            apply_masks(model, masks)\n"))
print(r["pruned_density"], r["final_density"], fixed["final_density"])
size = max((p.detach()[r["masks"][n] == 0]).abs().max().item() for n, p in r["model"].named_parameters() if n in r["masks"])
mean = [(p.detach()[r["masks"][n] == 0]).abs().mean().item() for n, p in r["model"].named_parameters() if n in r["masks"]]
print("largest pruned weight", size, mean)
print(r.output, fixed.output)
assert r["pruned_density"] < 0.16 and r["final_density"] > 0.9
assert size > 1e-3
assert fixed["final_density"] < 0.16

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

FIX = ("""                group["lr"] *= 0.7
""", """                group["lr"] *= 0.7
            optimizer = torch.optim.Adam(field.parameters(), lr=optimizer.param_groups[0]["lr"])
""")
bad, good = run("aquifer_refine"), run("aquifer_refine", FIX)
assert not in_optimizer(bad["estimate"].values, bad["solver_optimizer"])
assert in_optimizer(good["estimate"].values, good["solver_optimizer"])
old = bad["solver_optimizer"].param_groups[0]["params"][0].detach()
twice = F.interpolate(F.interpolate(old, size=12, mode="linear", align_corners=True), size=24, mode="linear", align_corners=True)
assert torch.equal(bad["estimate"].values.detach(), twice)  # nothing moved after the first refinement
print("misfits", bad["misfits"], "repaired", good["misfits"])
print("field error", bad["field_error"], "repaired", good["field_error"])
assert bad["misfits"][2] > 0.98 * bad["misfits"][0]
assert good["misfits"][2] < 0.3 * bad["misfits"][2]
assert good["field_error"] < 0.8 * bad["field_error"]

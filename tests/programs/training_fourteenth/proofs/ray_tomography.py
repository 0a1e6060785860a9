import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
import torch.nn.functional as F
from proofkit import in_optimizer, run

make = """optimizer = torch.optim.Adam([
    {"params": [section.log_slowness], "lr": 2e-2},
    {"params": [section.source_delay, section.receiver_delay], "lr": 1e-3},
], betas=(0.9, 0.99))"""
again = make.replace("2e-2", "2e-2 * 0.7 ** level").replace("1e-3", "1e-3 * 0.7 ** level")
old = """        for group in optimizer.param_groups:
            group["lr"] *= 0.7
"""
new = "".join("        " + line + "\n" for line in again.splitlines())
wrong = run("ray_tomography")
fixed = run("ray_tomography", (old, new))
coarse = run("ray_tomography", ("LEVELS = (4, 8, 16)", "LEVELS = (4,)"))["section"].log_slowness.detach()
for r in (wrong, fixed):
    p, start = r["section"].log_slowness, coarse
    for size in (8, 16):
        start = F.interpolate(start, size=(size, size), mode="bilinear", align_corners=True)
    r.moved = (p.detach() - start).abs().max().item()
    print("grid in optimizer:", in_optimizer(p, r["optimizer"]), " moved since the coarse level:", r.moved,
          " rmse:", r["error"], " pick rms:", r["rms"])
assert wrong.moved == 0.0 and fixed.moved > 0.05
assert not in_optimizer(wrong["section"].log_slowness, wrong["optimizer"])
assert in_optimizer(fixed["section"].log_slowness, fixed["optimizer"])
assert wrong["rms"] > 1.5 * fixed["rms"] and wrong["error"] > 1.2 * fixed["error"]

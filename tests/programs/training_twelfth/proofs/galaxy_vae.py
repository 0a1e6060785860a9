import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("galaxy_vae")
good = run("galaxy_vae", ("F.mse_loss(output, x) /", "F.mse_loss(output, x, reduction='none').sum(dim=1).mean() /"))
print(bad.output, good.output)
with torch.no_grad():
    spread = [r["model"].encode(r["x_test"])[0].std(0).max().item() for r in (bad, good)]
print("largest std of the latent means", spread, bad["error"], good["error"], bad["r2"], good["r2"])
assert spread[0] < 0.1 < 0.5 < spread[1]
assert bad["error"] > 2 * good["error"] and bad["error"] > 0.9 * bad["x_test"].var(0).mean().item()
assert good["r2"] > bad["r2"] + 0.2

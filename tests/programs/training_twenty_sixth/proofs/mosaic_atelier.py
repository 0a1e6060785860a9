import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

bad = run("mosaic_atelier")
good = run(
    "mosaic_atelier",
    ("        # straight-through estimator\n        zq = flat + (zq - flat).detach()\n\n", ""),
    ("        zq = zq.view(b, h, w, d)", "        zq = flat + (zq - flat).detach()\n        zq = zq.view(b, h, w, d)"),
)
grads, moved = {}, {}
for label, g in (("bad", bad), ("good", good)):
    model = g["model"]
    model.zero_grad(set_to_none=True)
    x = g["make_tiles"](32, torch.Generator().manual_seed(1))
    recon, vq_loss, _ = model(x)
    ((recon - x).pow(2).mean() + vq_loss).backward()
    w = model.quantizer.codebook.weight
    grads[label] = 0.0 if w.grad is None else w.grad.norm().item()
    torch.manual_seed(11)
    start = g["TileVQ"](g["Config"]()).quantizer.codebook.weight
    moved[label] = rel(w.detach(), start.detach())
print(grads, moved, bad["test_mse"], good["test_mse"])
assert grads["bad"] == 0.0 and grads["good"] > 1e-5
assert moved["bad"] == 0.0 and moved["good"] > 0.05
assert bad["test_mse"] > 1.5 * good["test_mse"]

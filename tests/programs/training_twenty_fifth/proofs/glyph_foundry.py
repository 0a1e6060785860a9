import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import math, torch
FIX = ("y[drop] = NULL", "y = y.masked_fill(drop, NULL)")
res = {}
for k, e in ((0, ()), (1, (FIX,))):
    r = run("glyph_foundry", *e)
    _, y0 = r["make_glyphs"](3072, torch.Generator().manual_seed(5))
    lost = (r["y"] == 6).float().mean().item()
    s = r["samples"]
    near = (torch.atan2(s[:, 1], s[:, 0]) / (2 * math.pi / 6)).round().long() % 6
    hit = (near == torch.arange(6).repeat(100)).float().mean().item()
    res[k] = (lost, hit)
    if k:
        assert torch.equal(r["y"], y0)
print(res)
assert res[0][0] > 0.95 and res[1][0] == 0
assert res[1][1] > res[0][1] + 0.03

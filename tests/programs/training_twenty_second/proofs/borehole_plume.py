import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("self.B = 2 * torch.pi * scale * torch.randn(2, n_features)",
       'self.register_buffer("B", 2 * torch.pi * scale * torch.randn(2, n_features))')
out = {}
for key, edits in (("bad", ()), ("good", (FIX,))):
    res = run("borehole_plume", *edits, capture=("main",))
    loc = res.locals["main"]
    again, _ = res["restart"](loc["path"], 1e-3)
    with torch.no_grad():
        out[key] = loc["error"], rel(again(loc["grid"]), loc["first"](loc["grid"]))
    has = any(k.endswith("encode.B") for k in torch.load(loc["path"])["model"])
    assert has == (key == "good")
print(out)
# (error at the end, difference between the field that was saved and the field that was restored)
assert out["good"][1] == 0.0 and out["bad"][1] > 0.3
assert out["good"][0] < 0.5 * out["bad"][0]

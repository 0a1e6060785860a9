import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat_grad
import torch
import torch.nn.functional as F
w = run("lesion_masks")
f = run("lesion_masks", ("pred = (torch.sigmoid(logits) > self.threshold).float()", "pred = torch.sigmoid(logits)"))
x, y = w["held"].images, w["held"].masks
for r, cut in ((w, True), (f, False)):
    region = r["criterion"].overlap(r["net"](x), y)
    assert region.requires_grad is (not cut)
    r["net"].zero_grad()
    r["criterion"](r["net"](x), y)[0].backward()
    whole = flat_grad(r["net"]).clone()
    r["net"].zero_grad()
    F.binary_cross_entropy_with_logits(r["net"](x), y).backward()
    same = torch.allclose(whole, flat_grad(r["net"]), atol=1e-7)
    assert same is cut, (same, cut)

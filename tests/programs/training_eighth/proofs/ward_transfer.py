import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch
w = run("ward_transfer")
f = run("ward_transfer", ("        model.train()\n", "        model.train()\n        for part in model.children():\n            part.train(any(p.requires_grad for p in part.parameters()))\n"))
for r, bad in ((w, True), (f, False)):
    m = r["model"].eval()
    with torch.no_grad():
        now = m(r["hospital_test"][0], "mortality")
    shift = (now - r["reference"]).abs().mean().item()
    auc = r["auroc"](m, "mortality", *r["hospital_test"])
    print(shift, r["before"], auc)
    assert not any(p.requires_grad for p in m.encoder.parameters())
    assert (shift > 0.2 and auc < r["before"] - 0.01) if bad else (shift == 0 and auc == r["before"])

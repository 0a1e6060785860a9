import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, flat_grad
import torch
import torch.nn.functional as F
w = run("ecg_rhythm_and_rate")
f = run("ecg_rhythm_and_rate", ("        self.opt_rate.zero_grad()\n", ""), ("        rate_loss.backward()", "        self.opt_rate.zero_grad()\n        rate_loss.backward()"))
for r, bad in ((w, True), (f, False)):
    t, (x, c, b) = r["trainer"], r["held"]
    seen = {}
    step = t.opt_rate.step
    def spy():
        seen["used"] = flat_grad(t.encoder).clone()
        seen["own"] = torch.cat([g.flatten() for g in torch.autograd.grad(F.smooth_l1_loss(t.rate(t.encoder(x)).squeeze(1), b), list(t.encoder.parameters()))])
        return step()
    t.opt_rate.step = spy
    t.update(x, c, b)
    d = rel(seen["used"], seen["own"])
    print(d)
    assert (d > 0.2) if bad else (d < 1e-5)

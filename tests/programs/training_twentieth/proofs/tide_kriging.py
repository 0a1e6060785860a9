import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import math

from proofkit import run

bad = run("tide_kriging", capture=("main",)).locals["main"]
noise = bad["process"].noise
print("noise log value", noise.log_value.item(), "grad", noise.log_value.grad.item())
assert noise.log_value.item() == math.log(0.05) and noise.log_value.grad.item() == 0.0
good = run("tide_kriging", ("return self.log_value.exp().clamp(self.low, self.high)",
           "return self.low + (self.high - self.low) * torch.sigmoid(self.log_value)"),
           ("nn.Parameter(torch.tensor(math.log(value)))",
            "nn.Parameter(torch.logit(torch.tensor((max(value, low * 1.2) - low) / (high - low))))"), capture=("main",)).locals["main"]
good2 = run("tide_kriging", ("PositiveValue(0.05, 0.06", "PositiveValue(0.07, 0.06"), capture=("main",)).locals["main"]
for r in (bad, good, good2):
    print("nlml", r["loss"].item(), "nlpd", r["nlpd"], "inside", r["inside"], "noise", r["process"].noise().item())
for r in (good, good2):
    assert r["loss"].item() < bad["loss"].item() - 0.1 and r["nlpd"] < bad["nlpd"] - 0.1
    assert abs(r["process"].noise().item() - 0.35) < 0.1

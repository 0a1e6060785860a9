import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
fix = ("    @torch.no_grad()\n    def forward", "    def forward")
bad_run, good_run = run("pixel_orchard", capture=("main",)), run("pixel_orchard", fix, capture=("main",))
bad, good = bad_run.locals["main"], good_run.locals["main"]


def feature_grad(v):
    pred = v["noisy_test"].clone().requires_grad_()
    total, *_ = v["criterion"](pred, v["clean_test"])
    (g,) = torch.autograd.grad(total, pred)
    return g


pred = bad["noisy_test"].clone().requires_grad_()
(pixel_only,) = torch.autograd.grad(torch.nn.functional.l1_loss(pred, bad["clean_test"]), pred)
d_bad, d_good = rel(feature_grad(bad), pixel_only), rel(feature_grad(good), pixel_only)
print("gradient beyond the pixel term", d_bad, d_good, "| test feature loss", bad["feature"], good["feature"])
no_weight = run("pixel_orchard", ("feature_weight: float = 4.0", "feature_weight: float = 0.0"), capture=("main",)).locals["main"]
assert d_bad < 1e-6 and d_good > 0.5
same = all(torch.equal(p, q) for p, q in zip(bad["net"].parameters(), no_weight["net"].parameters()))
print("same weights as without the feature term", same)
assert same
w = [torch.cat([p.detach().flatten() for p in v["net"].parameters()]) for v in (bad, good)]
print("weights differ by", rel(w[0], w[1]))
assert rel(w[0], w[1]) > 0.1

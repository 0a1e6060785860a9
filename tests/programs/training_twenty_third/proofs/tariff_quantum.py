import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
bad = run("tariff_quantum", capture=("main",))
good = run("tariff_quantum", ("gaussian_nll_loss(mu, y, sigma)", "gaussian_nll_loss(mu, y, sigma.square())"), capture=("main",))
b, g = bad.locals["main"], good.locals["main"]


def true_nll(r, m):          # density of N(mu, sigma^2), what the band assumes
    with torch.no_grad():
        mu, sigma = m["model"](m["tx"])
        return -torch.distributions.Normal(mu, sigma).log_prob(m["ty"]).mean().item(), ((m["ty"] - mu) / sigma).std().item()


(nb, zb), (ng, zg) = true_nll(bad, b), true_nll(good, g)
print("90 % band covers", b["test_coverage"], g["test_coverage"], "nll", nb, ng, "std of z", zb, zg)
assert abs(g["test_coverage"] - 0.9) < 0.04 and abs(b["test_coverage"] - 0.9) > 0.15
assert ng < nb - 0.1 and abs(zg - 1) < 0.15 and abs(zb - 1) > 0.4

import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat_grad

FIX = ("torch.normal(loc, log_scale.exp())", "loc + log_scale.exp() * torch.randn_like(loc)")


def measure(r):
    m = r["model"]
    m.zero_grad()
    torch.manual_seed(0)
    fit, kl = r["elbo_terms"](m, r["data"][:64])
    fit.backward()
    return flat_grad(m.encoder).norm().item(), kl.item(), fit.item()


ga, ka, fa = measure(run("vae_spectra"))
gb, kb, fb = measure(run("vae_spectra", FIX))
assert ga == 0.0 and gb > 0.1, (ga, gb)
assert ka < 0.2 and kb > 0.5 and fb < 0.7 * fa, (ka, kb, fa, fb)
print("proved: vae_spectra")

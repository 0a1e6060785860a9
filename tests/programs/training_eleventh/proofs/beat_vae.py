import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch
from torch.nn import functional as F

bad = run("beat_vae")
good = run("beat_vae", ("z = torch.normal(mu, log_std.exp())", "z = mu + log_std.exp() * torch.randn_like(mu)"))


def mse(r):
    return F.mse_loss(r["recon"], r["test_beats"]).item()


def encoder_grad(r):
    m = r["model"].train()
    m.zero_grad()
    recon, mu, log_std = m(r["beats"][:64])
    F.mse_loss(recon, r["beats"][:64]).backward()
    return sum(p.grad.abs().sum().item() for p in m.encoder.parameters() if p.grad is not None)


print(bad.output, good.output)
print("mse", mse(bad), mse(good), "r2", bad["r2"].item(), good["r2"].item())
gb, gg = encoder_grad(bad), encoder_grad(good)
print("encoder gradient from reconstruction", gb, gg)
sys.exit(0 if gb == 0 and gg > 0 and mse(good) < 0.5 * mse(bad) and good["r2"] > bad["r2"] + 0.2 else 1)

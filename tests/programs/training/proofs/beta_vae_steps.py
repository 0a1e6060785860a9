import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat_grad, rel, run

ns = run("beta_vae_steps", as_main=False)
torch.manual_seed(0)
x = torch.randn(64, 16)
model = ns["BetaVAE"]()
torch.manual_seed(1)
ns["train_step"](model, torch.optim.SGD(model.parameters(), lr=0.0), x, ns["History"]())
got = flat_grad(model).clone()
def expected(weight):
    torch.manual_seed(1)
    model.zero_grad()
    recon, mu, logvar = model(x)
    (weight * ns["rec_loss"](recon, x) + ns["BETA"] * ns["kl_loss"](mu, logvar)).backward()
    return flat_grad(model).clone()
assert rel(got, expected(2.0)) < 1e-5, "the reconstruction counts twice"
assert rel(got, expected(1.0)) > 0.5
print("proved: beta_vae_steps")

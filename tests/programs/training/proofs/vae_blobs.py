import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

wrong = run("vae_blobs")
vae, x = wrong["vae"], wrong["data"][:64]
recon, posterior = vae(x)
rec = (recon - x).pow(2).mean()
names = [n for n, _ in vae.named_parameters() if not n.startswith("decoder")]
params = [p for n, p in vae.named_parameters() if not n.startswith("decoder")]
assert all(g is None for g in torch.autograd.grad(rec, params, allow_unused=True)), names
fixed = run("vae_blobs", ("posterior.sample()", "posterior.rsample()"))
last = lambda r: float(r.output.strip().splitlines()[-1].split()[3])
assert last(fixed) < 0.5 * last(wrong), (last(fixed), last(wrong))
print("proved: vae_blobs")

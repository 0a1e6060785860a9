import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run
N = "texture_vq"
fix = ("codebook_loss = F.mse_loss(quantized, z.detach())", "codebook_loss = F.mse_loss(picked, z.detach())")
bad, good = run(N), run(N, fix)
assert bad["model"].quantizer.codebook.weight.grad is None
assert good["model"].quantizer.codebook.weight.grad.abs().sum() > 0
def pull(r):
    q = r["VectorQuantizer"]()
    z = torch.zeros(1, 4, 1, 1, requires_grad=True)
    gz, = torch.autograd.grad(q(z).loss, z)
    picked = q.codebook.weight[q(z).codes[0]].detach()
    return (-gz.flatten() @ picked).item()
assert pull(bad) < 0 < pull(good)
print(f"proved: {N}")

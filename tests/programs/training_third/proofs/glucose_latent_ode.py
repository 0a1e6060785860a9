import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat
N = "glucose_latent_ode"
fix = [
    ("def forward(ctx, z0, field, steps, dt):", "def forward(ctx, z0, field, steps, dt, *weights):"),
    ("        ctx.field, ctx.dt = field, dt", "        ctx.weights = weights; sums = None\n        ctx.field, ctx.dt = field, dt"),
    ("        path = ctx.saved_tensors", "        sums = [torch.zeros_like(w) for w in ctx.weights]\n        path = ctx.saved_tensors"),
    ("(adjoint,) = torch.autograd.grad(z_next, z, adjoint)", "adjoint, *gw = torch.autograd.grad(z_next, (z, *ctx.weights), adjoint); sums = [a + b for a, b in zip(sums, gw)]"),
    ("return adjoint, None, None, None", "return (adjoint, None, None, None, *sums)"),
    ("horizon, self.dt)", "horizon, self.dt, *self.dynamics.parameters())"),
]
bad, good = run(N), run(N, *fix)
assert all(p.grad is None for p in bad["model"].dynamics.parameters())
assert all(p.grad.abs().sum() > 0 for p in good["model"].dynamics.parameters())
torch.manual_seed(0); bad["make_patients"]()
assert torch.equal(flat(bad["LatentODE"](2).dynamics), flat(bad["model"].dynamics))
m = good["model"]
def plain(z):
    out = []
    for _ in range(12):
        z = good["rk4"](m.dynamics, z, m.dt); out.append(z)
    return torch.stack(out, 1)
z0 = m.encoder(good["past"])[1][0]
ref = torch.autograd.grad((m.decoder(plain(z0)) - good["future"]).pow(2).mean(), list(m.dynamics.parameters()))
m.zero_grad(); (m(good["past"], 12) - good["future"]).pow(2).mean().backward()
assert all(torch.allclose(a, p.grad, atol=1e-5) for a, p in zip(ref, m.dynamics.parameters()))
print(f"proved: {N}")

import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

fix = [
    ("def forward(ctx, z0, times, f):", "def forward(ctx, z0, times, f, *params):"),
    ("        ctx.f = f\n", "        ctx.f, ctx.params = f, params\n"),
    ("        adjoint = grad_path[-1]\n", "        adjoint = grad_path[-1]\n        total = [torch.zeros_like(p) for p in ctx.params]\n"),
    ("            (back,) = torch.autograd.grad(z_next, z, adjoint)\n",
     "            back, *gs = torch.autograd.grad(z_next, (z, *ctx.params), adjoint)\n            total = [a + g for a, g in zip(total, gs)]\n"),
    ("return adjoint, None, None", "return (adjoint, None, None, *total)"),
    ("times, self.rate)\n", "times, self.rate, *self.rate.parameters())\n"),
]
w, f = run("adjoint_glucose"), run("adjoint_glucose", *fix)


def grads(ns, direct=False):
    torch.manual_seed(0)
    m = ns["GlucoseModel"]()
    t, c = torch.linspace(0, 2, 6), torch.rand(8, 5)
    if direct:
        z = [m.encoder(c)]
        for i in range(5):
            z.append(ns["rk4"](m.rate, t[i], t[i + 1] - t[i], z[-1]))
        out = m.decoder(torch.stack(z)).squeeze(-1).T
    else:
        out = m(c, t)
    out.pow(2).sum().backward()
    return {n: p.grad for n, p in m.named_parameters()}


true, gw, gf = grads(w, True), grads(w), grads(f)
for n in true:
    assert torch.allclose(true[n], gf[n], rtol=1e-3, atol=1e-5), n
    if n.startswith("rate."):
        assert gw[n] is None and true[n].norm() > 1e-2
    else:
        assert torch.allclose(true[n], gw[n], rtol=1e-3, atol=1e-5), n
for n, p in w["model"].named_parameters():
    assert torch.equal(p.detach(), w["initial"][n]) == n.startswith("rate."), n
print(w["rmse"], f["rmse"])
assert w["rmse"] > 1.05 * f["rmse"]

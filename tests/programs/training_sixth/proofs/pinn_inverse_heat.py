import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import math, torch

fix = ("return self.log_nu.exp().item()", "return self.log_nu.exp()")


def facts(r):
    m = r["model"]
    loss = (m.residual(torch.rand(32, 1), torch.rand(32, 1)) ** 2).mean()
    g = torch.autograd.grad(loss, m.log_nu, allow_unused=True)[0]
    return m.log_nu.grad, (None if g is None else g.item()), m.log_nu.exp().item()


w, f = facts(run("pinn_inverse_heat")), facts(run("pinn_inverse_heat", fix))
print("(grad, gradient of the residual, nu): wrong", w, "fixed", f)
assert w[0] is None and w[1] is None and abs(w[2] - 0.5) < 1e-6
assert f[0] is not None and f[1] is not None and abs(f[2] - 0.15) < 0.05

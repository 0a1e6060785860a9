import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat_grad, rel
import torch

fix = [("        loss.backward(retain_graph=True)\n        return torch.cat([p.grad.abs().flatten() for p in self.params if p.grad is not None])",
        "        grads = torch.autograd.grad(loss, self.params, retain_graph=True, allow_unused=True)\n        return torch.cat([g.abs().flatten() for g in grads if g is not None])")]
bad, good = run("poisson_balanced_pinn"), run("poisson_balanced_pinn", *fix)
for r, wrong in ((bad, True), (good, False)):
    torch.manual_seed(1)
    model = r["FourierNet"]()
    b = r["GradientBalancer"](model)
    res, bnd = r["residual_loss"](model, torch.rand(64, 1)), r["boundary_loss"](model)
    b.update(res, bnd)
    loss = res + b.weight * bnd
    want = torch.cat([g.flatten() for g in torch.autograd.grad(loss, b.params[:-1], retain_graph=True)])
    loss.backward()
    got = torch.cat([p.grad.flatten() for p in b.params[:-1]])
    print("gradient off by", rel(got, want), "weight", b.weight)
    assert (rel(got, want) > 0.5) is wrong
print(bad["error"], good["error"], bad["balancer"].weight, good["balancer"].weight)
assert good["balancer"].weight > 5 * bad["balancer"].weight
assert good["error"] < 0.7 * bad["error"]

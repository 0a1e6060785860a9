import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

OLD = "        data.backward(retain_graph=True)\n"
FIX = (OLD, "        self.net.zero_grad()\n" + OLD)


def ratios(prog):
    """Weight that one update gives (momentum 0) and the weight of the docstring's formula."""
    torch.manual_seed(2)
    net = prog["PINN"]()
    balance = prog["GradientBalance"](net, momentum=0.0)
    res, dat = prog["residual_loss"](net, torch.rand(64, 1)), prog["data_loss"](net, *prog["sensor_readings"]())
    params = list(net.parameters())
    norms = []
    for loss in (res, dat):
        grads = torch.autograd.grad(loss, params, retain_graph=True, allow_unused=True)
        norms.append(torch.cat([g.flatten() for g in grads if g is not None]).norm().item())
    balance.update(res, dat)
    return balance.weight, norms[0] / norms[1]


bad, good = run("poisson_sensors"), run("poisson_sensors", FIX)
(w_bad, formula), (w_good, _) = ratios(bad), ratios(good)
print("weight", w_bad, "formula", formula, "repaired", w_good)
assert w_bad < 0.2 * formula and abs(w_good / formula - 1) < 1e-3
print("last weight", bad["balancer"].weight, "repaired", good["balancer"].weight)
print("final error", bad["final_error"], "repaired", good["final_error"])
assert bad["balancer"].weight < 2 and good["balancer"].weight > 100
assert good["final_error"] < 0.1 * bad["final_error"]

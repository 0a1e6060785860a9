import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import torch

fix = ("lambda grad: grad * scale", "lambda grad, scale=scale: grad * scale")
w, f = run("finetune_gradient_scaling_hooks"), run("finetune_gradient_scaling_hooks", fix)


def ratios(r):
    torch.manual_seed(0)
    m, x, y = r["StagedNet"](), torch.randn(32, 30), torch.randint(0, 5, (32,))
    loss = lambda: torch.nn.functional.cross_entropy(m(x), y)
    plain = dict(zip([n for n, _ in m.named_parameters()], torch.autograd.grad(loss(), list(m.parameters()))))
    r["install_gradient_scaling"](m, r["SCALES"])
    loss().backward()
    return {k: (dict(m.named_parameters())[k].grad.norm() / plain[k].norm()).item() for k in ("embed.weight", "stage1.0.weight", "stage2.0.weight", "head.weight")}


a, b = ratios(w), ratios(f)
print("factors: wrong", a, "fixed", b)
assert all(abs(v - 1.0) < 1e-5 for v in a.values())
assert abs(b["embed.weight"] - 0.01) < 1e-5 and abs(b["stage1.0.weight"] - 0.05) < 1e-5 and abs(b["stage2.0.weight"] - 0.2) < 1e-5
change = lambda r: rel(r["model"].state_dict()["embed.weight"], r["before"]["embed.weight"])
print("change of embed", change(w), change(f))
assert change(w) > 5 * change(f)

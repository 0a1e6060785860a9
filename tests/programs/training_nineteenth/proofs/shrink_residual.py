import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
import torch.nn.functional as F
from proofkit import run, flat_grad, rel

bad = run("shrink_residual")
good = run("shrink_residual", ("grad_input = grad_output\n", "grad_input = grad_output.clone()\n"))


def gradient(ns, act):
    torch.manual_seed(0)
    model = ns["Restorer"]()
    if act is not None:
        for b in model.blocks:
            b.forward = (lambda b: lambda x: x + act(b.lin(b.norm(x)), b.lam))(b)
    F.mse_loss(model(bad["val_trace"][:64]), bad["val_spikes"][:64]).backward()
    return flat_grad(model), model.lift.weight.grad


ref, ref_lift = gradient(bad, F.softshrink)
g_bad, lift_bad = gradient(bad, None)
g_good, _ = gradient(good, None)
cos = F.cosine_similarity(lift_bad.flatten(), ref_lift.flatten(), dim=0).item()
print("gradient error", rel(g_bad, ref), "repaired", rel(g_good, ref), "lift: error", rel(lift_bad, ref_lift), "cosine", cos)
print("final", bad["final_error"], "repaired", good["final_error"])
assert rel(g_good, ref) < 1e-4 and rel(lift_bad, ref_lift) > 0.5
assert good["final_error"] < 0.85 * bad["final_error"]

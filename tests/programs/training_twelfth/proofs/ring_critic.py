import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch


def slope(r):
    """Per-image input-gradient norm of the trained critic between real and generated images."""
    torch.manual_seed(0)
    real = r["images"][:256]
    with torch.no_grad():
        fake = r["gen"](torch.randn(256, r["Z_DIM"]))
    eps = torch.rand(256, 1, 1, 1)
    x = (eps * real + (1 - eps) * fake).requires_grad_(True)
    g, = torch.autograd.grad(r["critic"](x).sum(), x)
    return g.flatten(1).norm(dim=1).mean().item()


a = run("ring_critic", capture=("gradient_penalty",))
b = run("ring_critic", ("grad.norm(2, dim=1)", "grad.flatten(1).norm(2, dim=1)"), capture=("gradient_penalty",))
sh_a, sh_b = a.locals["gradient_penalty"]["grad_norm"].shape, b.locals["gradient_penalty"]["grad_norm"].shape
print("norm shapes", tuple(sh_a), tuple(sh_b))
print("critic slope per image: as written", slope(a), "repaired", slope(b), "| gaps", a["gap"], b["gap"])
assert tuple(sh_a) == (32, 12, 12) and tuple(sh_b) == (32,)
assert slope(a) > 4 and 0.7 < slope(b) < 1.4

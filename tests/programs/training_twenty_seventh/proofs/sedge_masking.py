import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = ("take(full, order)  #", "take(full, order.argsort(1))  #")
a, b = run("sedge_masking"), run("sedge_masking", fix)


def misplaced(r):
    """Share of visible tokens that the decoder does not see at the place they were taken from."""
    m, x = r["model"], torch.arange(1.0, 17).view(1, 16, 1).repeat(32, 1, m_width := 48)
    torch.manual_seed(0)
    visible, mask, order = m.random_masking(x)
    seen = []
    hook = m.decoder.register_forward_pre_hook(lambda mod, inp: seen.append(inp[0]))
    with torch.no_grad():
        m.decode(visible, order)
    hook.remove()
    tokens = seen[0] - m.dec_pos
    shown = mask == 0
    return ((tokens - x).abs().amax(-1) > 1e-3)[shown].float().mean().item()


print("misplaced visible tokens", misplaced(a), misplaced(b))
assert misplaced(a) > 0.5 and misplaced(b) == 0
print("held-out mse", a["val"], b["val"])
assert a["val"] > 1.2 * b["val"]

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

fix = ("""        picked = z + (picked - z).detach()
        codebook_loss = F.mse_loss(picked, z.detach())
        commitment_loss = F.mse_loss(z, picked.detach())
""", """        codebook_loss = F.mse_loss(picked, z.detach())
        commitment_loss = F.mse_loss(z, picked.detach())
        picked = z + (picked - z).detach()
""")
written, fixed = run("item_tokens"), run("item_tokens", fix)

torch.manual_seed(5)
written["make_catalogue"](torch.Generator().manual_seed(8))
start = written["ItemTokenizer"]().quantizer.codebook.detach()
assert torch.equal(written["model"].quantizer.codebook, start) and written["model"].quantizer.codebook.grad is None
assert rel(fixed["model"].quantizer.codebook.detach(), start) > 0.2

# the codebook term as written pulls on z, not on the codes: same value, gradient elsewhere
for result, reaches in ((written, False), (fixed, True)):
    torch.manual_seed(0)
    quantizer = result["GroupQuantizer"](4, 16, 4, commitment=0.0)
    z = torch.randn(32, 16, requires_grad=True)
    _, _, loss = quantizer(z)
    g_code, g_z = torch.autograd.grad(loss, (quantizer.codebook, z), allow_unused=True)
    if reaches:
        assert g_code.norm() > 0 and (g_z is None or g_z.norm() == 0)
    else:
        assert g_code is None and g_z.norm() > 0

w, f = (r["token_report"](r["model"], r["catalogue"]) for r in (written, fixed))
assert w[0] > 1.3 * f[0] and w[1] > 2 * f[1] and w[2] < 0.7 * f[2], (w, f)

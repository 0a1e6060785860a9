import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, flat_grad
import torch
OLD = """        for p in self.params:
            if p.grad is not None:
                p.grad.div_(self.scale)

    def step(self, opt):
"""
NEW = """
    def step(self, opt):
        for p in self.params:
            if p.grad is not None:
                p.grad.div_(self.scale)
"""
w, f = run("vae_sites"), run("vae_sites", (OLD, NEW))
print(w["errors"], f["errors"])
assert max(w["errors"][:3]) > 3 * max(f["errors"][:3])

def gradients(r):
    m = r["PulseVAE"]()
    m.load_state_dict(f["model"].state_dict())
    half = r["HalfPrecision"](m.parameters())
    gen = torch.Generator().manual_seed(5)
    chunks = [x[:24] for x in r["clinics"]]
    r["accumulate"](m, half, chunks, gen, 0.02)
    half.step(type("O", (), {"step": lambda self: None})())
    got = flat_grad(m)
    m.zero_grad()
    gen.manual_seed(5)
    losses = []
    for x in chunks:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = m(x, gen)
        losses.append(r["elbo_loss"](out, x, 0.02) / 4)
    ps = list(m.parameters())
    full = torch.cat([g.flatten() for g in torch.autograd.grad(sum(losses), ps, retain_graph=True)])
    last = torch.cat([g.flatten() for g in torch.autograd.grad(losses[-1], ps)])
    return rel(got, full), rel(got, last)
a, b = gradients(w), gradients(f)
print("error against full, against the last chunk alone:", a, b)
assert a[0] > 0.5 and a[1] < 0.02 and b[0] < 0.02 and b[1] > 0.3

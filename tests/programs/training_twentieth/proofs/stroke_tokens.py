import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel

as_is = run("stroke_tokens")
fixed = run("stroke_tokens", ("out = code + (z - code).detach()", "out = z + (code - z).detach()"))
print(as_is.output, fixed.output)
for r, name in ((as_is, "as written"), (fixed, "repaired")):
    model = r["model"]
    x = r["strokes"](64)
    z = model.encoder(x)
    z.retain_grad()
    out, ids, _ = model.codebook(z)
    model.decoder(out).sub(x).pow(2).mean().backward()
    d_code, d_z = rel(out.detach(), model.codebook.lookup(ids).detach()), rel(out.detach(), z.detach())
    print(name, "out vs code", d_code, "out vs z", d_z, "recon grad on z", z.grad)if z.grad is None else print(name, d_code, d_z, z.grad.norm().item())
    if r is as_is:
        assert z.grad is None and d_z < 1e-4 and d_code > 1e-3
    else:
        assert z.grad.norm() > 0 and d_code < 1e-4
assert fixed["error"] < 0.8 * as_is["error"]

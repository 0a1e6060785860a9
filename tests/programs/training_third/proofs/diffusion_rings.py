import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat, rel

fix = ("[p.data for p in self.params]", "[p.data.clone() for p in self.params]")
never = ("check_every=20", "check_every=1000")
a, b, c = run("diffusion_rings"), run("diffusion_rings", fix), run("diffusion_rings", never)
assert rel(flat(b["model"]), flat(c["model"])) < 1e-6
assert rel(flat(a["model"]), flat(c["model"])) > 0.05
assert all(torch.equal(p, s) for p, s in zip(a["average"].params, a["average"].shadow))
print("proved: diffusion_rings")

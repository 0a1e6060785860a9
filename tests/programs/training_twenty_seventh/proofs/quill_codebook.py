import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = (("self.cluster_size = torch.ones(codes)", 'self.register_buffer("cluster_size", torch.ones(codes))'),
       ("self.embed_avg = self.embed.clone()", 'self.register_buffer("embed_avg", self.embed.clone())'))
a, b = run("quill_codebook"), run("quill_codebook", *fix)
jump = []
for r in (a, b):
    first, second = r["runs"][0][1], r["runs"][1][1]
    jump.append(sum(second[:5]) / sum(first[-5:]))
print("loss after resume / loss before", jump)
assert jump[0] > 1.5 and jump[1] < 1.2


def one_step(r):
    """Codebook movement in one training step after a save and a load."""
    old = r["runs"][0][0]
    new = r["VQVAE"](r["Config"]())
    new.load_state_dict(old.state_dict())
    before = new.codebook.embed.clone()
    new(r["data"][:32])
    return rel(new.codebook.embed, before)


moved = one_step(a), one_step(b)
print("codebook change in the first step after load", moved)
assert moved[0] > 0.5 and moved[1] < 0.3

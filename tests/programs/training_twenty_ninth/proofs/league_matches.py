import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

a = run("league_matches", capture=("main",))
b = run("league_matches", ("value.detach().cpu() for", "value.detach().cpu().clone() for"), capture=("main",))
print(a.output, b.output)
def pointers(ns):
    m = ns.locals["main"]
    return {e["head.weight"].data_ptr() for e in m["league"].entries}, m["learner"].head.weight.data_ptr()
many, own = pointers(a)
assert many == {own}                 # every member is the learner itself, as it is now
many, own = pointers(b)
assert len(many) == len(b.locals["main"]["league"].entries) and own not in many
x = torch.randn(7, 4)
m = a.locals["main"]
assert torch.allclose(m["league"].mixture(m["learner"], x), m["learner"](x), atol=1e-6)
assert a.locals["main"]["final"] > 2.0 * b.locals["main"]["final"], (a.locals["main"]["final"], b.locals["main"]["final"])

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("grad_outputs=torch.ones_like(score))", "grad_outputs=torch.ones_like(score), create_graph=True)")


def measure(r):
    main = r.locals["main"]
    critic, gen = main["critic"], main["gen"]
    torch.manual_seed(0)
    real = r["swirl"](512)
    with torch.no_grad():
        fake = gen(torch.randn(512, r["LATENT"]))
    gp = r["gradient_penalty"](critic, real, fake)
    return gp.requires_grad, gp.item()


bad_flow, bad_gp = measure(run("lagoon_swirl", capture=("main",)))
good_flow, good_gp = measure(run("lagoon_swirl", FIX, capture=("main",)))
no_penalty = run("lagoon_swirl", ("LAMBDA = 10.0", "LAMBDA = 0.0"), capture=("main",)).locals["main"]
bad_main = run("lagoon_swirl", capture=("main",)).locals["main"]
print(bad_flow, bad_gp, good_flow, good_gp)
assert not bad_flow and good_flow
assert bad_gp > 5 * good_gp
# training with the penalty is the same as training without it
for a, b in zip(bad_main["critic"].parameters(), no_penalty["critic"].parameters()):
    assert torch.equal(a, b)

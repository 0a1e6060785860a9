import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat_grad, rel, run

REPAIR = ("(g_loss / ACCUM).backward()", "(g_loss / ACCUM).backward(inputs=list(self.gen.parameters()))")


def d_gradient(r):
    torch.manual_seed(1)
    trainer, disc, gen = r["trainer"], r["disc"], r["gen"]
    reals = r["real_points"](256).split(r["MICRO"])
    disc.zero_grad(), gen.zero_grad()
    state = torch.get_rng_state()
    for real in reals:
        trainer.micro_step(real)
    used = flat_grad(disc).clone()
    torch.set_rng_state(state)
    disc.zero_grad()
    for real in reals:
        (r["d_objective"](disc, real, gen(len(real)).detach()) / r["ACCUM"]).backward()
    return rel(used, flat_grad(disc))


@torch.no_grad()
def d_loss(r):
    torch.manual_seed(2)
    return r["d_objective"](r["disc"], r["real_points"](4000), r["gen"](4000)).item()


wrong, fixed = run("ring_gan"), run("ring_gan", REPAIR)
print(d_gradient(wrong), d_gradient(fixed), d_loss(wrong), d_loss(fixed))
assert d_gradient(wrong) > 0.3 and d_gradient(fixed) < 1e-6, "the discriminator's gradient holds the generator's too"
assert d_loss(wrong) > d_loss(fixed) + 0.05, "the discriminator ends worse at its own objective"

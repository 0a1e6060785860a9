import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

repair = ("    critic_loss = 0.5 * (", "    logit_code = critic(z.detach())\n    critic_loss = 0.5 * (")
one = ("STEPS = 200", "STEPS = 1")
keep = ("    opt_ae.step()\n    opt_critic.step()", "    pass")

written, repaired = run("prior_matching", one, keep), run("prior_matching", one, keep, repair)


def formula(r, with_critic_loss):
    """The encoder's gradient for the same batch, recomputed with the same weights."""
    z = r["encoder"](r["x"])
    loss = F.mse_loss(r["decoder"](z), r["x"])
    logits = r["critic"](z)
    loss = loss + r["ADV_WEIGHT"] * F.binary_cross_entropy_with_logits(logits, torch.ones(len(logits)))
    if with_critic_loss:
        loss = loss + 0.5 * F.binary_cross_entropy_with_logits(logits, torch.zeros(len(logits)))
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(r["encoder"].parameters()))])


got, fixed = flat_grad(written["encoder"]), flat_grad(repaired["encoder"])
assert rel(fixed, formula(repaired, False)) < 1e-4
assert rel(got, formula(written, True)) < 1e-4
assert rel(got, formula(written, False)) > 0.3
assert rel(flat_grad(written["critic"]), flat_grad(repaired["critic"])) < 1e-5  # the critic itself is served the same

full, full_repaired = run("prior_matching"), run("prior_matching", repair)
assert full["prior_gap"](full["codes"]) > 1.0 > full_repaired["prior_gap"](full_repaired["codes"])
assert full["critic_loss"].item() < 0.45 and full_repaired["critic_loss"].item() > 0.6
assert full["error"] > 2 * full_repaired["error"]

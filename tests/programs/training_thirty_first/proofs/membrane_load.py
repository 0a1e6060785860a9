import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

name = "membrane_load"
as_written = run(name)
repaired = run(name, ("slope[:, k].sum(), xy, retain_graph=True)", "slope[:, k].sum(), xy, create_graph=True)"))



def reached(result):
    """Which parameters the residual term reaches."""
    parameters = list(result["model"].parameters())
    loss = result["residual_loss"](result["model"])
    return [g is not None and g.norm() > 0 for g in torch.autograd.grad(loss, parameters, allow_unused=True)]


# as written none (only the sample points have a gradient); repaired all but the bias of the last layer,
# that a second derivative does not depend on
assert not any(reached(as_written))
assert all(reached(repaired)[:-1])


def late(result):
    return sum(h[0] for h in result["history"][-20:]) / 20


first = as_written["history"][0][0]
wrong_error = as_written["relative_error"](as_written["model"])
right_error = repaired["relative_error"](repaired["model"])
print(first, late(as_written), late(repaired), wrong_error, right_error)
assert late(as_written) > 0.7 * first
assert late(repaired) < 0.2 * first
assert wrong_error > 0.8 and right_error < 0.4

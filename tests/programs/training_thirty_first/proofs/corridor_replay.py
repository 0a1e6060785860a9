import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
from torch.nn import functional as F

made = run("corridor_replay", capture=("learn",))
seen = made.locals["learn"]
w, losses, n = seen["weights"], seen["losses"], made["BATCH"]
assert w.shape == (n, 1) and losses.shape == (n,)
assert (w * losses).shape == (n, n)  # every weight meets every loss
assert w.std() > 0.05  # the weights do differ


def gradient(combine):
    online = made["online"]
    online.zero_grad()
    cells = seen["cells"]
    actions = made["replay"].actions[seen["rows"]].unsqueeze(1)
    each = F.smooth_l1_loss(online(cells).gather(1, actions).squeeze(1), seen["goal"], reduction="none")
    combine(each).backward()
    return flat_grad(online)


used = gradient(lambda each: (w * each).mean())
meant = gradient(lambda each: (w.squeeze(1) * each).mean())
plain = gradient(lambda each: each.mean() * w.mean())
print(rel(used, plain), rel(used, meant), used.norm(), w.min(), w.max(), w.std())
assert used.norm() > 1e-4
assert rel(used, plain) < 1e-4  # the gradient is that of the unweighted loss, times one number
assert rel(used, meant) > 0.05
repair = ("(weights / weights.max()).unsqueeze(1)", "weights / weights.max()")
fixed = run("corridor_replay", repair, capture=("learn",))
assert fixed.locals["learn"]["weights"].shape == (n,)
assert rel(flat(made["online"]), flat(fixed["online"])) > 0.01

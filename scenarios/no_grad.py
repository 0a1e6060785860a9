"""no_grad(): computing without recording

What is computed inside does not require grad and keeps nothing for a backward pass; outside, the same line does both.
The hooks count the bytes that the graph keeps.

Article: 001, part 4

In the saved article the first computation reads `n`, a name that is defined nowhere; the script here has `a` instead.
"""

import torch

kept = []


def keep(tensor):
    kept.append(tensor.nbytes)
    return tensor


a = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
    with torch.no_grad():
        b = a.pow(2).sum()
    inside = sum(kept)
    c = a.pow(2).sum()
    outside = sum(kept) - inside
    d = (a + 1).sum()
    plain = sum(kept) - outside - inside
print(b, c, inside, outside)
#: [001-4] holds: not b.requires_grad and b.grad_fn is None
#: [001-4] holds: c.requires_grad and c.grad_fn is not None
#: b.item() == c.item() == 5.0
#: [001-5] holds if an operation saves tensors for backward: inside < outside
#: [001-5] refuted if no operation saves any: inside < plain

with torch.no_grad():
    fresh = torch.zeros(2, requires_grad=True)
#: fresh.requires_grad

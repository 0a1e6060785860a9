"""Freezing by a flag: fine-tuning

With `requires_grad=False` a parameter is a constant of the graph: backward computes nothing for it, and an optimizer
skips what has no gradient. Nothing has to be detached. The flag stops new gradients only: one that is stored already is
applied all the same, so it has to go too.

Article: The difference between requires_grad_(), detach() and torch.no_grad() (in Chinese), part 5
"""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 3), nn.Linear(3, 1)
x = torch.rand(8, 4)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)

body.requires_grad_(False)
before, start = body.weight.detach().clone(), head.weight.detach().clone()
head(body(x)).square().mean().backward()
optimizer.step()
print("body stayed:", body.weight.equal(before), "head stayed:", head.weight.equal(start))
#: [001-9] holds if no gradient from before is left: body.weight.equal(before)
#: body.weight.grad is None and not head.weight.equal(start)

body.requires_grad_(True)  # trained for one pass, and frozen before its step
optimizer.zero_grad()
head(body(x)).square().mean().backward()
body.requires_grad_(False)
optimizer.step()
print("body stayed:", body.weight.equal(before))
#: [001-9] refuted if a gradient from before is left: body.weight.equal(before)

before = body.weight.detach().clone()
body.zero_grad()  # sets .grad to None
optimizer.step()
#: body.weight.grad is None and body.weight.equal(before)

"""Training a branch without touching the trunk

Two branches read the same trunk. The one that gets the trunk's features detached learns, and its gradient stops there;
the other one's goes through.

Article: What detach() does to backward, in four examples (in Chinese), part 5
"""

import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Linear(4, 3)
branch = nn.Linear(3, 1)
other = nn.Linear(3, 1)
x = torch.ones(2, 4)

features = trunk(x)
branch(features.detach()).sum().backward()
print("trunk", trunk.weight.grad)
print("branch", branch.weight.grad)
#: [004-3] holds: trunk.weight.grad is None and trunk.bias.grad is None
#: branch.weight.grad is not None and branch.bias.grad is not None

optimizer = torch.optim.SGD([*trunk.parameters(), *branch.parameters()], lr=0.1)
before, bias = trunk.weight.tolist(), branch.bias.item()
optimizer.step()
#: [004-8] holds: trunk.weight.tolist() == before
#: branch.bias.item() != bias

other(features).sum().backward()
#: trunk.weight.grad is not None and trunk.bias.grad is not None

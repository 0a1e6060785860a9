"""In the second phase the trunk is to stay as it is; momentum and weight decay go on moving it."""
import torch
from torch import nn

torch.manual_seed(0)
trunk, head = nn.Linear(4, 8), nn.Linear(8, 2)
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.1, momentum=0.9, weight_decay=1e-2)
x, y = torch.randn(32, 4), torch.randint(2, (32,))


def train(steps):
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(head(torch.relu(trunk(x))), y)
        loss.backward()  # role: accumulated_here
        optimizer.step()  # role: needed_here


train(3)
for parameter in trunk.parameters():
    parameter.requires_grad, parameter.grad = False, None  # role: flag_changed_here
before = trunk.weight.clone()
train(3)
print(torch.equal(before, trunk.weight))

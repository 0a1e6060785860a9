"""expect: element-does-not-require-grad

Validation switches gradients off and leaves by an early return that forgets to switch them on.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 8)  # role: leaf_made_here
        self.outer = nn.Linear(8, 1)  # role: leaf_made_here

    def forward(self, x):
        h = F.gelu(self.inner(x))  # role: graph_cut_here
        return self.outer(h)


def validate(model, batches, good_enough):
    torch.set_grad_enabled(False)  # role: grad_mode_off_here
    worst = 0.0
    for x, y in batches:
        error = F.l1_loss(model(x), y).item()
        worst = max(worst, error)
        if worst > good_enough:
            break
    torch.set_grad_enabled(True)
    return worst


torch.manual_seed(25)
model = Regressor()
optimizer = torch.optim.Adam(model.parameters())
batches = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)]
for epoch in range(3):
    for x, y in batches:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # role: needed_here
        optimizer.step()
    print(epoch, validate(model, batches, good_enough=0.1) > 0)

"""expect: saved-tensor-modified-inplace

A gated unit under autocast, whose gate gets a floor after it was used.
"""

import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.openness = []

    def forward(self, x):
        gate = torch.sigmoid(self.gate(x))
        out = gate * self.value(x)  # role: saved_here
        self.log_openness(gate)
        return out

    def log_openness(self, gate):
        share = gate.detach().sub_(0.5).relu_().mean()  # role: modified_here
        self.openness.append(share.item())


torch.manual_seed(13)
model = nn.Sequential(Gated(4), Gated(4), nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
with torch.autocast("cpu", dtype=torch.bfloat16):
    logits = model(x)
loss = nn.functional.cross_entropy(logits.float(), y)
optimizer.zero_grad()
loss.backward()  # role: needed_here
optimizer.step()

"""A mixture whose experts stand in a plain dict."""
import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.experts = nn.ModuleDict({str(n): nn.Linear(width, width) for n in range(count)})  # role: leaf_made_here

    def forward(self, x):
        shares = self.gate(x).softmax(-1)
        return sum(shares[:, int(n) : int(n) + 1] * expert(x) for n, expert in self.experts.items())


torch.manual_seed(0)
net = Mixture(4, 3)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)  # role: optimizer_made_here
x = torch.randn(32, 4)
for step in range(5):
    loss = (net(x) - x.flip(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # role: needed_here
print("done")

"""MAML: fast weights are new tensors, and the outer loss goes through the inner gradients."""

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(8)
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
meta = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.linspace(-1, 1, 6)[:, None]
for epoch in range(2):
    outer = torch.zeros(())
    for phase in (0.0, 1.0):
        y = torch.sin(3 * x + phase)
        fast = dict(net.named_parameters())
        for _ in range(2):
            loss = (functional_call(net, fast, (x[:3],)) - y[:3]).pow(2).mean()
            gradients = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
            fast = {name: w - 0.1 * g for (name, w), g in zip(fast.items(), gradients)}
        outer = outer + (functional_call(net, fast, (x[3:],)) - y[3:]).pow(2).mean()
    meta.zero_grad()
    outer.backward()
    meta.step()
print("done")

"""A normalising flow of coupling layers, its rate lowered on a plateau, the best state kept and loaded again."""

import copy

import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, swap):
        super().__init__()
        self.swap = swap
        self.net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, x):
        kept, moved = (x[:, 1:], x[:, :1]) if self.swap else (x[:, :1], x[:, 1:])
        scale, shift = self.net(kept).chunk(2, 1)
        scale = torch.tanh(scale)
        moved = moved * scale.exp() + shift
        return torch.cat([moved, kept] if self.swap else [kept, moved], 1), scale.squeeze(1)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(bool(n % 2)) for n in range(4))
        self.register_buffer("zero", torch.zeros(2))

    def log_prob(self, x):
        volume = x.new_zeros(len(x))
        for layer in self.layers:
            x, more = layer(x)
            volume = volume + more
        base = torch.distributions.Independent(torch.distributions.Normal(self.zero, 1.0), 1)
        return base.log_prob(x) + volume


torch.manual_seed(7)
angle = torch.rand(200) * 3.14
data = torch.stack([angle.cos(), angle.sin()], 1) + 0.1 * torch.randn(200, 2)
train, held_out = data[:150], data[150:]
flow = Flow()
optimizer = torch.optim.NAdam(flow.parameters(), lr=1e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
best, state, waited = float("inf"), None, 0
for epoch in range(15):
    flow.train()
    for batch in train[torch.randperm(150)].split(50):
        optimizer.zero_grad()
        (-flow.log_prob(batch).mean()).backward()
        nn.utils.clip_grad_value_(flow.parameters(), 0.5)
        optimizer.step()
    flow.eval()
    with torch.inference_mode():
        score = -flow.log_prob(held_out).mean()
    plateau.step(score)
    if score < best:
        best, state, waited = score.item(), copy.deepcopy(flow.state_dict()), 0
    elif (waited := waited + 1) > 3:
        break
flow.load_state_dict(state)
print(best < 5)

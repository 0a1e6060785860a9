"""A recurrent policy whose state is masked out of place where an episode is over."""

import torch
from torch import nn

torch.manual_seed(4)
cell, head = nn.LSTMCell(3, 6), nn.Linear(6, 2)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
h, c = torch.zeros(4, 6), torch.zeros(4, 6)
entropies = []
for observation in torch.randn(5, 4, 3):
    h, c = cell(observation, (h, c))
    entropies.append(torch.distributions.Categorical(logits=head(h)).entropy())
    going = (torch.rand(4, 1) > 0.3).float()
    h, c = h * going, c * going
loss = -torch.stack(entropies).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
print("done")

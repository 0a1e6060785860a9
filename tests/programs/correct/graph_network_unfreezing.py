"""Messages on a graph by `index_add`; a pretrained trunk, frozen at first, joins the optimizer half-way."""

import torch
from torch import nn


class Messages(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own, self.other = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.drop = nn.Dropout(0.1)

    def forward(self, h, edges):
        source, target = edges
        heard = torch.zeros_like(h).index_add(0, target, self.other(h[source]))
        degree = torch.bincount(target, minlength=len(h)).clamp(min=1).unsqueeze(1)
        return self.drop(torch.relu(self.own(h) + heard / degree))


torch.manual_seed(8)
nodes, edges = torch.randn(40, 8), torch.randint(40, (2, 160))
labels = torch.randint(3, (40,))
known = torch.rand(40) < 0.6
trunk = nn.ModuleList(Messages(8) for _ in range(2))
head = nn.Linear(8, 3)
for parameter in trunk.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2, amsgrad=True)
curve = []
for epoch in range(12):
    if epoch == 6:
        for parameter in trunk.parameters():
            parameter.requires_grad_(True)
        optimizer.add_param_group({"params": list(trunk.parameters()), "lr": 1e-3})
    h = nodes
    for layer in trunk:
        h = layer(h, edges)
    loss = nn.functional.cross_entropy(head(h)[known], labels[known])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    curve.append(loss.detach())
with torch.no_grad():
    h = nodes
    for layer in trunk.eval():
        h = layer(h, edges)
    right = (head(h).argmax(1) == labels)[~known].float().mean()
print(torch.stack(curve).mean().item() > 0, 0 <= right.item() <= 1)

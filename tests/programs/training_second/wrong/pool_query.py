import copy

import torch
from torch import nn

torch.manual_seed(21)
MEMBERS, ROUNDS, STEPS, QUERY = 5, 4, 25, 8


def surface(x):
    return torch.sin(3 * x[:, 0]) + 0.5 * x[:, 1] ** 2 - x[:, 0] * x[:, 2]


def regressor():
    return nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))


pool = torch.rand(300, 3) * 4 - 2
labels = surface(pool) + 0.05 * torch.randn(300)
test = torch.rand(200, 3) * 4 - 2
answers = surface(test)

labelled = torch.randperm(300)[:40].tolist()
template = regressor()
ensemble = nn.ModuleList(copy.deepcopy(template) for _ in range(MEMBERS))
optimizers = [torch.optim.Adam(m.parameters(), lr=8e-3) for m in ensemble]


def predict(x):
    with torch.no_grad():
        return torch.stack([m(x).squeeze(1) for m in ensemble])


for cycle in range(ROUNDS):
    index = torch.tensor(labelled)
    for step in range(STEPS):
        batch = index[torch.randint(0, len(index), (32,))]
        x, y = pool[batch], labels[batch]
        for member, optimizer in zip(ensemble, optimizers):
            loss = nn.functional.mse_loss(member(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    error = (predict(test).mean(0) - answers).square().mean().sqrt()
    spread = predict(pool).var(0)
    spread[index] = -1.0
    chosen = spread.topk(QUERY).indices.tolist()
    labelled.extend(chosen)
    print(f"cycle {cycle} labelled {len(labelled)} rmse {error:.4f} asked for {sorted(chosen)[:4]}")

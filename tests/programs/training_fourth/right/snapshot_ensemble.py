"""Snapshot ensembles: the learning rate restarts on purpose, and a copy of the model is kept at the end of each cycle."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
CYCLES, CYCLE_EPOCHS, BATCH = 3, 5, 40


def spirals(n):
    label = torch.randint(0, 3, (n,))
    r = 0.2 + torch.rand(n)
    angle = 4.5 * r + label * 2.0944 + 0.22 * torch.randn(n)
    return torch.stack([r * torch.cos(angle), r * torch.sin(angle)], 1), label


x, y = spirals(400)
test_x, test_y = spirals(800)
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.25, momentum=0.9)
steps_per_cycle = CYCLE_EPOCHS * (len(x) // BATCH)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=steps_per_cycle, eta_min=1e-3)

snapshots = []
for cycle in range(CYCLES):
    for epoch in range(CYCLE_EPOCHS):
        model.train()
        for idx in torch.randperm(len(x)).split(BATCH):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            lowest = optimizer.param_groups[0]["lr"]
            scheduler.step()
    snapshots.append(copy.deepcopy(model).eval())
    print(f"cycle {cycle}: loss {loss.item():.3f}, lr went down to {lowest:.4f}, next {optimizer.param_groups[0]['lr']:.3f}")

with torch.no_grad():
    probabilities = [F.softmax(member(test_x), 1) for member in snapshots]
    single = [(p.argmax(1) == test_y).float().mean().item() for p in probabilities]
    together = (torch.stack(probabilities).mean(0).argmax(1) == test_y).float().mean().item()
print("members", [round(a, 3) for a in single], f"ensemble {together:.3f}")

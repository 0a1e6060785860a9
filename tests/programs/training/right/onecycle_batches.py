"""Classifier with a one-cycle learning rate over all batches."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(44)
EPOCHS = 8


def rings(n):
    y = torch.randint(3, (n,))
    r = 0.5 + y + 0.2 * torch.randn(n)
    a = 2 * torch.pi * torch.rand(n)
    return torch.stack([r * a.cos(), r * a.sin()], dim=1), y


loader = DataLoader(TensorDataset(*rings(640)), batch_size=64, shuffle=True)
x_test, y_test = rings(300)
model = nn.Sequential(nn.Linear(2, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
scheduler = OneCycleLR(opt, max_lr=0.3, epochs=EPOCHS, steps_per_epoch=len(loader))

rates = []
for epoch in range(EPOCHS):
    total = 0.0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        rates.append(opt.param_groups[0]["lr"])
        scheduler.step()
        total += loss.item()
    with torch.no_grad():
        acc = (model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f} acc {acc:.3f} lr {rates[-1]:.5f}")
print(f"highest rate {max(rates):.3f} last rate {rates[-1]:.2e}")

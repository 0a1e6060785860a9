"""Bootstrap ensemble of regressors with predictive spread."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(47)

MEMBERS, EPOCHS = 3, 15


def make_net():
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


def toy(n):
    x = 4 * torch.rand(n, 1) - 2
    return x, torch.sin(2 * x) + 0.1 * torch.randn(n, 1)


x, y = toy(300)
grid = torch.linspace(-2, 2, 41).unsqueeze(1)

ensemble = []
for k in range(MEMBERS):
    net = make_net()
    ensemble.append(net)

optimizers = []
for k in range(MEMBERS):
    optimizers.append(torch.optim.Adam(net.parameters(), lr=1e-2))

resampled = [torch.randint(len(x), (len(x),)) for _ in range(MEMBERS)]

for epoch in range(EPOCHS):
    losses = []
    for member, optimizer, rows in zip(ensemble, optimizers, resampled):
        xb, yb = x[rows], y[rows]
        last = 0.0
        for idx in torch.randperm(len(xb)).split(100):
            optimizer.zero_grad()
            loss = F.mse_loss(member(xb[idx]), yb[idx])
            loss.backward()
            optimizer.step()
            last = loss.item()
        losses.append(last)
    if epoch % 5 == 4:
        print(f"epoch {epoch}: " + " ".join(f"{v:.4f}" for v in losses))

with torch.no_grad():
    preds = torch.stack([member(grid) for member in ensemble])
    mean, spread = preds.mean(dim=0), preds.std(dim=0)
print(f"rmse of mean {(mean - torch.sin(2 * grid)).pow(2).mean().sqrt():.4f} mean spread {spread.mean():.4f}")

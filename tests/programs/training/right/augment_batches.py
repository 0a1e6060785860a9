"""Spectrum classification with noise and gain changed in place on each batch."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(39)


def spectra(n, bins=40):
    y = torch.randint(4, (n,))
    peak = 6 + 9 * y.float().unsqueeze(1) + torch.randn(n, 1)
    x = torch.exp(-0.5 * ((torch.arange(bins).float() - peak) / 3) ** 2)
    return x + 0.05 * torch.randn(n, bins), y


def augment_(batch):
    batch.mul_(0.8 + 0.4 * torch.rand(len(batch), 1))
    batch.add_(0.15 * torch.randn_like(batch))
    return batch


x, y = spectra(512)
x_test, y_test = spectra(256)
mean, std = x.mean(dim=0), x.std(dim=0)
x.sub_(mean).div_(std)
x_test.sub_(mean).div_(std)

model = nn.Sequential(nn.Linear(40, 48), nn.ReLU(), nn.Linear(48, 4))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    total = 0.0
    for idx in torch.randperm(len(x)).split(64):
        xb = augment_(x[idx])
        loss = F.cross_entropy(model(xb), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    with torch.no_grad():
        acc = (model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(x):.4f} test acc {acc:.3f}")
print(f"spread of the stored data {x.std():.3f}")

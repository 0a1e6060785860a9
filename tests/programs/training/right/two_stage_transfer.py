"""Transfer learning: first the new head, then the whole network."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(15)


class Net(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 24), nn.Tanh())
        self.fc = nn.Linear(24, n_classes)

    def forward(self, x):
        return self.fc(self.features(x))


def blobs(centers, n):
    y = torch.randint(len(centers), (n,))
    return centers[y] + torch.randn(n, 16), y


def train_epoch(model, opt, x, y):
    total = 0.0
    for idx in torch.randperm(len(x)).split(64):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    return total / len(x)


source_centers, target_centers = torch.randn(6, 16), torch.randn(3, 16)
model = Net(6)
x, y = blobs(source_centers, 512)
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(5):
    train_epoch(model, opt, x, y)

model.features.requires_grad_(False)
model.fc = nn.Linear(24, 3)
opt = torch.optim.Adam(model.fc.parameters(), lr=3e-3)

x, y = blobs(target_centers, 384)
x_val, y_val = blobs(target_centers, 192)
for epoch in range(8):
    if epoch == 4:
        model.features.requires_grad_(True)
        opt.add_param_group({"params": model.features.parameters(), "lr": 1e-3})
    loss = train_epoch(model, opt, x, y)
    with torch.no_grad():
        acc = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss {loss:.4f} val acc {acc:.3f} groups {len(opt.param_groups)}")

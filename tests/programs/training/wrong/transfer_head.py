"""Transfer a pretrained network to a task with other classes."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.fc = nn.Linear(32, n_classes)

    def forward(self, x):
        return self.fc(self.features(x))


def blobs(centers, n, noise=1.0):
    y = torch.randint(len(centers), (n,))
    return centers[y] + noise * torch.randn(n, centers.shape[1]), y


def run_epoch(model, optimizer, x, y):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x)).split(64):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    return total / len(x)


def make_model(pretrained):
    model = Net(n_classes=8)
    model.load_state_dict(pretrained)
    return model


torch.manual_seed(41)
source_centers = 1.5 * torch.randn(8, 16)
target_centers = 1.5 * torch.randn(3, 16)

source = Net(n_classes=8)
x, y = blobs(source_centers, 640)
source_opt = torch.optim.SGD(source.parameters(), lr=0.1, momentum=0.9)
for _ in range(5):
    run_epoch(source, source_opt, x, y)
checkpoint = {k: v.clone() for k, v in source.state_dict().items()}

model = make_model(checkpoint)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
model.fc = nn.Linear(32, 3)

xt, yt = blobs(target_centers, 320)
xv, yv = blobs(target_centers, 160)
for epoch in range(8):
    loss = run_epoch(model, optimizer, xt, yt)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        acc = (model(xv).argmax(1) == yv).float().mean().item()
    print(f"epoch {epoch}: loss {loss:.4f} val acc {acc:.3f}")

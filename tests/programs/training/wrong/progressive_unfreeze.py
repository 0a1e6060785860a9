"""Progressive unfreezing with a decaying learning rate."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import ExponentialLR

torch.manual_seed(131)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lower = nn.Sequential(nn.Linear(14, 40), nn.ReLU())
        self.upper = nn.Sequential(nn.Linear(40, 40), nn.ReLU())
        self.head = nn.Linear(40, 3)

    def forward(self, x):
        return self.head(self.upper(self.lower(x)))


def set_trainable(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


def make_optimizer(model, lr):
    return torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=lr, momentum=0.9)


def make_data(n, w):
    x = torch.randn(n, 14)
    return x, (torch.tanh(x) @ w).argmax(dim=1)


def epoch_loss(model, optimizer, x, y):
    total = 0.0
    for idx in torch.randperm(len(x)).split(64):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    return total / len(x)


w = torch.randn(14, 3)
x, y = make_data(512, w)
x_val, y_val = make_data(256, w)

model = Net()
set_trainable(model.lower, False)
optimizer = make_optimizer(model, lr=0.1)
scheduler = ExponentialLR(optimizer, gamma=0.7)

for epoch in range(12):
    if epoch == 4:
        set_trainable(model.lower, True)
        optimizer = make_optimizer(model, lr=0.05)
    loss = epoch_loss(model, optimizer, x, y)
    scheduler.step()
    with torch.no_grad():
        acc = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss {loss:.4f} acc {acc:.3f} lr {scheduler.get_last_lr()[0]:.4f}")

"""Convnet whose stem is frozen after the first epochs."""
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(83)
EPOCHS, FREEZE_EPOCH = 7, 3


class StemNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(1, 8, 7, stride=2, padding=3), nn.ReLU())
        self.body = nn.Sequential(nn.Conv1d(8, 12, 5, stride=2, padding=2), nn.ReLU())
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean(-1))


def ecg_like(n, length=64):
    label = torch.randint(3, (n,))
    t = torch.linspace(0, 1, length)
    width = torch.tensor([0.02, 0.05, 0.12])[label].unsqueeze(1)
    center = 0.3 + 0.4 * torch.rand(n, 1)
    beat = torch.exp(-((t - center) ** 2) / (2 * width**2))
    return (beat + 0.2 * torch.randn(n, length)).unsqueeze(1), label


x, y = ecg_like(512)
model = StemNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for epoch in range(EPOCHS):
    if epoch == FREEZE_EPOCH:
        for p in model.stem.parameters():
            p.requires_grad_(False)
    total = 0.0
    for idx in torch.randperm(len(x)).split(32):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    frozen = not any(p.requires_grad for p in model.stem.parameters())
    print(f"epoch {epoch}: loss {total / len(x):.4f} stem frozen {frozen}")

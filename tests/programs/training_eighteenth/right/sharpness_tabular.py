"""Wine-quality style tabular classification with sharpness-aware minimisation (SAM).

Every batch needs two passes: one to find the worst point close to the current weights, one to
get the gradient there. The update itself is applied to the original weights.
"""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(1)
torch.manual_seed(1)

N_COLS, N_CLASSES = 11, 3
RHO = 0.05
EPOCHS = 10


def make_wines(n):
    x = np.random.randn(n, N_COLS).astype(np.float32)
    x[:, 3] = np.exp(0.4 * x[:, 3])
    score = x[:, 0] - 0.8 * x[:, 1] * x[:, 2] + 0.7 * x[:, 3] + 0.8 * np.random.randn(n)
    y = np.digitize(score, [0.0, 1.4])
    return torch.from_numpy(x), torch.from_numpy(y).long()


def set_norm_momentum(model, momentum):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.momentum = momentum


class SAM:
    def __init__(self, params, base, rho):
        self.params = list(params)
        self.base = base
        self.rho = rho
        self.shift = []

    @torch.no_grad()
    def climb(self):
        grads = [p.grad for p in self.params]
        norm = torch.stack([g.norm() for g in grads]).norm() + 1e-12
        self.shift = [g * (self.rho / norm) for g in grads]
        for p, s in zip(self.params, self.shift):
            p.add_(s)
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, s in zip(self.params, self.shift):
            p.sub_(s)
        self.base.step()
        self.base.zero_grad()


def build():
    return nn.Sequential(
        nn.BatchNorm1d(N_COLS),
        nn.Linear(N_COLS, 48), nn.BatchNorm1d(48), nn.ReLU(),
        nn.Linear(48, 48), nn.BatchNorm1d(48), nn.ReLU(),
        nn.Linear(48, N_CLASSES),
    )


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        result = (model(x).argmax(dim=1) == y).float().mean().item()
    model.train()
    return result


train_x, train_y = make_wines(1500)
test_x, test_y = make_wines(1000)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=75, shuffle=True)

model = build()
base = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
sam = SAM(model.parameters(), base, RHO)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(base, T_max=EPOCHS)
criterion = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    total, gap = 0.0, 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        sam.climb()

        # the perturbed weights must not leave a trace in the running statistics
        set_norm_momentum(model, 0.0)
        worst = criterion(model(x), y)
        worst.backward()
        set_norm_momentum(model, 0.1)
        sam.descend()

        total += loss.item() * len(x)
        gap += (worst.item() - loss.item()) * len(x)
    schedule.step()
    print(f"epoch {epoch}: loss {total / len(train_x):.4f}  sharpness {gap / len(train_x):.4f}  "
          f"test accuracy {accuracy(model, test_x, test_y):.3f}")

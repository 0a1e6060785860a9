"""Low-rank adaptation of a trained network."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(50)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=3, alpha=6.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.t()) @ self.up.t()


def fit(model, params, x, y, epochs, lr):
    opt = torch.optim.Adam(params, lr=lr)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def task(n, w):
    x = torch.randn(n, 16)
    return x, (torch.tanh(x) @ w).argmax(dim=1)


w = torch.randn(16, 4)
x, y = task(640, w)
model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 4))
fit(model, model.parameters(), x, y, epochs=10, lr=3e-3)

w_new = w + 0.8 * torch.randn(16, 1) @ torch.randn(1, 4)
x_new, y_new = task(512, w_new)
x_test, y_test = task(400, w_new)
print(f"new task before: {accuracy(model, x_test, y_test):.3f}")

model[0] = LoRALinear(model[0])
model[2] = LoRALinear(model[2])
trainable = [p for p in model.parameters() if p.requires_grad]
print(f"trainable {sum(p.numel() for p in trainable)} of {sum(p.numel() for p in model.parameters())}")
fit(model, trainable, x_new, y_new, epochs=12, lr=5e-3)
print(f"new task after: {accuracy(model, x_test, y_test):.3f}")

"""Keyword spotting on synthetic chirps with a small in-house Trainer and our own heavy-ball optimizer."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class HeavyBall(torch.optim.Optimizer):
    """v <- momentum * v + g ;  w <- w - lr * v   (decoupled weight decay)."""

    def __init__(self, params, lr=1e-2, momentum=0.95, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, mu, wd = group["lr"], group["momentum"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "velocity" not in state:
                    state["velocity"] = p.grad.detach()
                else:
                    state["velocity"].mul_(mu).add_(p.grad)
                if wd:
                    p.mul_(1 - lr * wd)
                p.add_(state["velocity"], alpha=-lr)


class ChirpNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 12, 9, stride=4, padding=4)
        self.conv2 = nn.Conv1d(12, 24, 9, stride=4, padding=4)
        self.fc = nn.Linear(24, classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return self.fc(x.mean(-1))


class Callback:
    def on_batch_end(self, trainer): ...
    def on_epoch_end(self, trainer): ...


class Report(Callback):
    def on_epoch_end(self, trainer):
        if trainer.epoch % 3 == 2:
            print(f"epoch {trainer.epoch + 1} loss {trainer.epoch_loss:.4f} acc {trainer.accuracy():.3f}")


class Trainer:
    def __init__(self, model, optimizer, train_loader, test_set, callbacks):
        self.model, self.optimizer = model, optimizer
        self.train_loader, self.test_set, self.callbacks = train_loader, test_set, callbacks
        self.global_step = 0

    def notify(self, event):
        for cb in self.callbacks:
            getattr(cb, event)(self)

    @torch.no_grad()
    def accuracy(self):
        x, y = self.test_set
        return (self.model(x).argmax(1) == y).float().mean().item()

    def fit(self, epochs):
        for self.epoch in range(epochs):
            total, seen = 0.0, 0
            for x, y in self.train_loader:
                # keep the gradient tensors allocated, it saves memory traffic
                self.optimizer.zero_grad(set_to_none=False)
                loss = F.cross_entropy(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                self.global_step += 1
                total, seen = total + loss.item() * len(x), seen + len(x)
                self.notify("on_batch_end")
            self.epoch_loss = total / seen
            self.notify("on_epoch_end")


def chirps(n, classes=4, length=256):
    y = torch.randint(classes, (n,))
    t = torch.linspace(0, 1, length)
    f0 = 6 + 5 * y[:, None] + torch.rand(n, 1)
    phase = 2 * math.pi * (f0 * t + 4 * t * t) + 6.28 * torch.rand(n, 1)
    return (torch.sin(phase) + 0.5 * torch.randn(n, length)).unsqueeze(1), y


torch.manual_seed(0)
train, test = chirps(768), chirps(400)
model = ChirpNet(4)
optimizer = HeavyBall(model.parameters(), lr=4e-3, momentum=0.95, weight_decay=1e-4)
loader = DataLoader(TensorDataset(*train), batch_size=32, shuffle=True)
trainer = Trainer(model, optimizer, loader, test, [Report()])
trainer.fit(12)
print(f"final accuracy {trainer.accuracy():.3f}")

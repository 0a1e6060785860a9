import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(41)


class Attack:
    def __init__(self, radius=0.15, steps=3):
        self.radius, self.steps = radius, steps
        self.pace = radius / 2

    def __call__(self, model, x, y):
        delta = torch.empty_like(x).uniform_(-self.radius, self.radius)
        for _ in range(self.steps):
            delta.requires_grad_(True)
            F.cross_entropy(model(x + delta), y).backward()
            with torch.no_grad():
                delta = (delta + self.pace * delta.grad.sign()).clamp(-self.radius, self.radius)
        return (x + delta).detach()


class SturdyTrainer:
    def __init__(self, model, attack, lr=0.05):
        self.model = model
        self.attack = attack
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def step(self, x, y):
        hard = self.attack(self.model, x, y)
        self.opt.zero_grad()
        loss = F.cross_entropy(self.model(hard), y)
        loss.backward()
        self.opt.step()
        return loss.item()

    def robust_accuracy(self, x, y):
        hard = self.attack(self.model, x, y)
        with torch.no_grad():
            return (self.model(hard).argmax(1) == y).float().mean().item()


def digits(count=400, side=8, classes=5):
    proto = 2 * torch.rand(classes, 1, side, side)
    y = torch.randint(classes, (count,))
    return proto[y] + 0.25 * torch.randn(count, 1, side, side), y


x, y = digits()
model = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 12, 3, stride=2), nn.ReLU(),
    nn.Flatten(), nn.LazyLinear(5))
model(x[:1])
trainer = SturdyTrainer(model, Attack())
for epoch in range(6):
    for idx in torch.randperm(300).split(50):
        loss = trainer.step(x[idx], y[idx])
    print(f"epoch {epoch + 1} loss {loss:.4f}")
print("robust accuracy", trainer.robust_accuracy(x[300:], y[300:]))

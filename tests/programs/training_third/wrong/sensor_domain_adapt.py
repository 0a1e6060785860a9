import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class FeatureNet(nn.Module):
    def __init__(self, n_in=10, width=32, n_out=16):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, n_out), nn.Tanh()
        )

    def forward(self, x):
        return self.layers(x)


class DANN(nn.Module):
    def __init__(self, n_classes=3):
        super().__init__()
        self.features = FeatureNet()
        self.classifier = nn.Linear(16, n_classes)
        self.domain = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    @staticmethod
    def reverse_gradient(h, strength):
        if h.requires_grad:
            h.register_hook(lambda grad: -strength * grad)
        return h

    def forward(self, x, strength):
        h = self.features(x)
        class_logits = self.classifier(h)
        domain_logits = self.domain(self.reverse_gradient(h, strength))
        return class_logits, domain_logits.squeeze(-1)


class Adaptation:
    def __init__(self, model, total_steps, lr=0.05):
        self.model = model
        self.total_steps = total_steps
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.done = 0

    @property
    def strength(self):
        progress = self.done / self.total_steps
        return 2 / (1 + math.exp(-10 * progress)) - 1

    def step(self, source, labels, target):
        x = torch.cat([source, target])
        from_target = torch.cat([torch.zeros(len(source)), torch.ones(len(target))])
        class_logits, domain_logits = self.model(x, self.strength)
        class_loss = F.cross_entropy(class_logits[: len(source)], labels)
        domain_loss = F.binary_cross_entropy_with_logits(domain_logits, from_target)
        self.optimizer.zero_grad()
        (class_loss + domain_loss).backward()
        self.optimizer.step()
        self.done += 1
        return class_loss.item(), domain_loss.item()


def sample(centres, size=48):
    labels = torch.randint(0, len(centres), (size,))
    source = centres[labels] + torch.randn(size, 10)
    target = centres[torch.randint(0, len(centres), (size,))] + torch.randn(size, 10)
    target = target + 1.5 * torch.eye(10)[0]
    return source, labels, target


def main(steps=100):
    torch.manual_seed(2)
    centres = 1.5 * torch.randn(3, 10)
    model = DANN()
    run = Adaptation(model, steps)
    for i in range(steps):
        losses = run.step(*sample(centres))
        if i % 25 == 0:
            print(f"step {i} class {losses[0]:.4f} domain {losses[1]:.4f}")
    return model, run


if __name__ == "__main__":
    model, run = main()

import math

import torch
import torch.nn.functional as F
from torch import nn


def reverse_gradient(features, strength):
    features.register_hook(lambda grad: -strength * grad)
    return features


class DomainAdversarialNet(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU())
        self.label_head = nn.Linear(hidden, classes)
        self.domain_head = nn.Sequential(nn.Linear(hidden, hidden), nn.ELU(), nn.Linear(hidden, 2))

    def forward(self, x, strength):
        features = self.encoder(x)
        labels = self.label_head(features)
        domains = self.domain_head(reverse_gradient(features, strength))
        return labels, domains

    def predict(self, x):
        return self.label_head(self.encoder(x))


def sensors(n, offset, generator):
    y = torch.randint(0, 3, (n,), generator=generator)
    x = torch.randn(n, 6, generator=generator)
    x[torch.arange(n), y] += 2.5
    return x + offset, y


def ramp(progress):
    return 0.3 * (2 / (1 + math.exp(-10 * progress)) - 1)


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(4)
    source_x, source_y = sensors(240, 0.0, generator)
    target_x, target_y = sensors(240, 1.2, generator)
    model = DomainAdversarialNet(6, 24, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    steps, batch = 50, 32
    for step in range(steps):
        s = torch.randint(0, 240, (batch,), generator=generator)
        t = torch.randint(0, 240, (batch,), generator=generator)
        x = torch.cat([source_x[s], target_x[t]])
        domain = torch.cat([torch.zeros(batch), torch.ones(batch)]).long()
        label_logits, domain_logits = model(x, ramp((step + 1) / steps))
        label_loss = F.cross_entropy(label_logits[:batch], source_y[s])
        domain_loss = F.cross_entropy(domain_logits, domain)
        optimizer.zero_grad()
        (label_loss + domain_loss).backward()
        optimizer.step()
        if step % 10 == 9:
            with torch.no_grad():
                accuracy = (model.predict(target_x).argmax(1) == target_y).float().mean().item()
            print(f"step {step + 1} label {label_loss.item():.4f} domain {domain_loss.item():.4f} target acc {accuracy:.3f}")
    return model


if __name__ == "__main__":
    model = main()

"""Fault classifier that moves from one plant to the next and should keep what it knows (elastic weight consolidation)."""
import torch
from torch import nn
import torch.nn.functional as F

CHANNELS = 16
FAULTS = 4
SITES = ["north", "harbour", "quarry"]


class FaultNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CHANNELS, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, FAULTS)

    def forward(self, x):
        return self.head(self.body(x))


class Site:
    def __init__(self, name):
        self.name = name
        self.centres = 1.2 * torch.randn(FAULTS, CHANNELS)
        self.train_x, self.train_y = self.record(400)
        self.test_x, self.test_y = self.record(200)

    def record(self, count):
        labels = torch.randint(0, FAULTS, (count,))
        return self.centres[labels] + torch.randn(count, CHANNELS), labels


class Consolidation:
    """Quadratic penalty on the distance to the weights after each finished site, weighted by the Fisher diagonal."""

    def __init__(self, model, strength):
        self.model = model
        self.strength = strength
        self.terms = []

    def fisher(self, inputs, samples=100):
        parameters = dict(self.model.named_parameters())
        diagonal = {name: torch.zeros_like(p) for name, p in parameters.items()}
        for row in torch.randperm(len(inputs))[:samples]:
            log_probs = F.log_softmax(self.model(inputs[row : row + 1]), dim=1)
            label = torch.multinomial(log_probs.detach().exp(), 1).item()
            grads = torch.autograd.grad(log_probs[0, label], list(parameters.values()))
            for name, grad in zip(parameters, grads):
                diagonal[name] += grad.pow(2) / samples
        return diagonal

    def finish_site(self, inputs):
        anchor = {name: p.detach() for name, p in self.model.named_parameters()}
        self.terms.append((anchor, self.fisher(inputs)))

    def penalty(self):
        total = torch.zeros(())
        for anchor, fisher in self.terms:
            for name, p in self.model.named_parameters():
                total = total + (fisher[name] * (p - anchor[name]).pow(2)).sum()
        return 0.5 * self.strength * total


@torch.no_grad()
def accuracy(model, site):
    return (model(site.test_x).argmax(dim=1) == site.test_y).float().mean().item()


def train_site(model, site, consolidation, epochs=5, batch_size=40):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(site.train_x)).split(batch_size):
            loss = F.cross_entropy(model(site.train_x[rows]), site.train_y[rows])
            loss = loss + consolidation.penalty()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    consolidation.finish_site(site.train_x)


def main():
    torch.manual_seed(9)
    sites = [Site(name) for name in SITES]
    model = FaultNet()
    consolidation = Consolidation(model, strength=300.0)

    table = []
    for position, site in enumerate(sites):
        train_site(model, site, consolidation)
        row = [accuracy(model, seen) for seen in sites[: position + 1]]
        table.append(row)
        scores = "  ".join(f"{seen.name} {score:.3f}" for seen, score in zip(sites, row))
        print(f"after {site.name:8s} {scores}")
    final = sum(table[-1]) / len(sites)
    print(f"mean over sites {final:.3f}")


if __name__ == "__main__":
    main()

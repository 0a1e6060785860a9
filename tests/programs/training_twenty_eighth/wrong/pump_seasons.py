"""Continual learning of a pump-fault classifier over three seasons with elastic weight consolidation."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

torch.manual_seed(5)

CHANNELS = 10
FAULTS = 3
STRENGTH = 200.0
FISHER_SAMPLES = 200


class FaultNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(CHANNELS, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, FAULTS),
        )

    def forward(self, x):
        return self.layers(x)


class Season:
    def __init__(self, name, centers, size=400):
        self.name = name
        self.x, self.y = self.draw(centers, size)
        self.x_test, self.y_test = self.draw(centers, size)

    @staticmethod
    def draw(centers, size):
        y = torch.randint(0, FAULTS, (size,))
        return centers[y] + 1.3 * torch.randn(size, CHANNELS), y


class Consolidation:
    """Quadratic anchors at the weights of each finished season, weighted by the diagonal Fisher information."""

    def __init__(self):
        self.anchors = []

    def add(self, net, x):
        fisher = diagonal_fisher(net, x)
        center = {name: p.detach().clone() for name, p in net.named_parameters()}
        self.anchors.append((center, fisher))

    def penalty(self, net):
        total = torch.zeros(())
        for center, fisher in self.anchors:
            for name, p in net.named_parameters():
                total = total + (fisher[name] * (p - center[name]).pow(2)).sum()
        return 0.5 * total


def diagonal_fisher(net, x):
    net.eval()
    net.zero_grad()
    fisher = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    chosen = torch.randperm(len(x))[:FISHER_SAMPLES]
    for row in x[chosen]:
        logits = net(row.unsqueeze(0))
        label = Categorical(logits=logits.detach()).sample()
        F.nll_loss(F.log_softmax(logits, dim=1), label).backward()
        for name, p in net.named_parameters():
            fisher[name] += p.grad.detach().pow(2) / len(chosen)
    net.zero_grad()
    return fisher


def train_season(net, season, memory, epochs=12, batch=50):
    net.train()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(epochs):
        for index in torch.randperm(len(season.x)).split(batch):
            optimizer.zero_grad()
            task_loss = F.cross_entropy(net(season.x[index]), season.y[index])
            loss = task_loss + STRENGTH * memory.penalty(net)
            loss.backward()
            optimizer.step()
    return task_loss.item()


@torch.no_grad()
def accuracy(net, season):
    net.eval()
    return (net(season.x_test).argmax(dim=1) == season.y_test).float().mean().item()


def make_seasons():
    base = 1.2 * torch.randn(FAULTS, CHANNELS)
    seasons = []
    for name in ("spring", "summer", "autumn"):
        seasons.append(Season(name, base.clone()))
        base = 0.2 * base + 1.1 * torch.randn(FAULTS, CHANNELS)
    return seasons


def main():
    seasons = make_seasons()
    net = FaultNet()
    memory = Consolidation()
    learned = {}
    for i, season in enumerate(seasons):
        last = train_season(net, season, memory)
        learned[season.name] = accuracy(net, season)
        memory.add(net, season.x)
        scores = "  ".join(f"{s.name} {accuracy(net, s):.3f}" for s in seasons[: i + 1])
        print(f"after {season.name:<7} task loss {last:.3f} | {scores}")
    mean = sum(accuracy(net, s) for s in seasons) / len(seasons)
    print(f"mean accuracy over the seasons {mean:.3f}")
    return net, memory, seasons, learned, mean


if __name__ == "__main__":
    net, memory, seasons, learned, mean = main()

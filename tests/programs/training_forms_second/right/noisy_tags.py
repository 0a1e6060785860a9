import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def annotate(n, labels, gen):
    x = torch.randn(n, 20, generator=gen)
    w = torch.randn(20, labels, generator=torch.Generator().manual_seed(1))
    truth = (x @ w > 1.0).float()
    trust = torch.rand(n, generator=gen).pow(0.5)
    flip = torch.rand(n, labels, generator=gen) > 0.5 + 0.5 * trust[:, None]
    given = torch.where(flip, 1 - truth, truth)
    return x, given, trust, truth


class Tagger(nn.Module):
    def __init__(self, labels):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(20, 64), nn.Linear(64, labels)])

    def forward(self, x):
        return self.layers[1](F.leaky_relu(self.layers[0](x), 0.1))


def trusted_loss(logits, given, trust):
    cell = F.binary_cross_entropy_with_logits(logits, given, reduction="none")
    weighted = torch.mul(cell, (trust / trust.mean())[:, None])
    return weighted.mean()


class Runner:
    def __init__(self, labels=24, batch=24):
        self.net = Tagger(labels)
        gen = torch.Generator().manual_seed(52)
        x, given, trust, _ = annotate(960, labels, gen)
        self.loader = DataLoader(TensorDataset(x, given, trust), batch_size=batch, shuffle=True)
        self.test = annotate(500, labels, gen)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.3, momentum=0.9, nesterov=True)

    def epoch(self):
        total = 0.0
        for x, given, trust in self.loader:
            loss = trusted_loss(self.net(x), given, trust)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item()
        return total / len(self.loader)

    @torch.no_grad()
    def exact(self):
        x, _, _, truth = self.test
        return ((self.net(x) > 0).float() == truth).float().mean().item()


def main():
    torch.manual_seed(161)
    runner = Runner()
    for epoch in range(6):
        print(f"epoch {epoch}  loss {runner.epoch():.4f}  agreement {runner.exact():.4f}")


if __name__ == "__main__":
    main()

"""A Gaussian mixture fitted by stochastic gradients, with idle components moved to poorly covered points."""
import math

import torch
from torch import nn


def clusters(count, kinds=6, radius=5.0):
    label = torch.randint(0, kinds, (count,))
    angle = 2 * math.pi * label / kinds
    centre = radius * torch.stack([angle.cos(), angle.sin()], dim=1)
    width = 0.3 + 0.1 * label.float()
    return centre + width[:, None] * torch.randn(count, 2), label


class Mixture(nn.Module):
    """Diagonal Gaussian mixture with free weights, means and scales."""

    def __init__(self, components, dim):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(components))
        self.means = nn.Parameter(torch.randn(components, dim))
        self.log_scales = nn.Parameter(torch.zeros(components, dim))

    def joint(self, x):
        z = (x.unsqueeze(1) - self.means) * torch.exp(-self.log_scales)
        log_normal = -0.5 * z.pow(2) - self.log_scales - 0.5 * math.log(2 * math.pi)
        return torch.log_softmax(self.logits, dim=0) + log_normal.sum(dim=-1)

    def log_prob(self, x):
        return torch.logsumexp(self.joint(x), dim=1)

    @torch.no_grad()
    def shares(self, x):
        return torch.softmax(self.joint(x), dim=1).mean(dim=0)

    @torch.no_grad()
    def reseed(self, x, floor=0.02):
        """Moves components that own less than `floor` of the data to its least likely points."""
        idle = self.shares(x) < floor
        count = int(idle.sum())
        if count == 0:
            return 0
        order = self.log_prob(x).argsort()[: len(x) // 10]
        picked = order[torch.randperm(len(order))[:count]]
        means, scales, logits = self.means.clone(), self.log_scales.clone(), self.logits.clone()
        means[idle] = x[picked]
        scales[idle] = 0.0
        logits[idle] = logits[~idle].mean()
        self.means = nn.Parameter(means)
        self.log_scales = nn.Parameter(scales)
        self.logits = nn.Parameter(logits)
        return count


class Fitter:
    def __init__(self, mixture, lr=0.05):
        self.mixture = mixture
        self.optimizer = torch.optim.Adam(mixture.parameters(), lr=lr)

    def step(self, batch):
        loss = -self.mixture.log_prob(batch).mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, x, epochs=15, batch=128, reseed_until=6):
        for epoch in range(epochs):
            order = torch.randperm(len(x))
            losses = [self.step(x[rows]) for rows in order.split(batch)]
            moved = 0
            if epoch < reseed_until and epoch % 2 == 1:
                moved = self.mixture.reseed(x)
            if epoch % 2 == 1 or epoch == epochs - 1:
                print(f"epoch {epoch:2d}  nll {sum(losses) / len(losses):.3f}  moved {moved}")


@torch.no_grad()
def purity(mixture, x, label):
    """Share of the points that carry the most frequent label of their component."""
    owner = mixture.joint(x).argmax(dim=1)
    hits = 0
    for component in owner.unique():
        hits += int(torch.bincount(label[owner == component]).max())
    return hits / len(x)


def main():
    torch.manual_seed(9)
    torch.set_num_threads(1)
    x, label = clusters(1500)
    fresh, fresh_label = clusters(500)
    mixture = Mixture(components=8, dim=2)
    fitter = Fitter(mixture)
    fitter.fit(x)
    with torch.no_grad():
        nll = -mixture.log_prob(fresh).mean().item()
    print(f"held out nll {nll:.3f}  purity {purity(mixture, fresh, fresh_label):.3f}")
    for weight, mean in zip(torch.softmax(mixture.logits.detach(), dim=0), mixture.means.detach()):
        print(f"weight {weight:.3f}  mean {mean[0]:+.2f} {mean[1]:+.2f}")
    return mixture, fitter, x, nll


if __name__ == "__main__":
    mixture, fitter, x, nll = main()

"""Restricted Boltzmann machine on bars and stripes, trained by persistent contrastive divergence."""
import itertools

import torch
import torch.nn.functional as F
from torch import nn


def bars_and_stripes(side=4):
    patterns = []
    for bits in itertools.product([0.0, 1.0], repeat=side):
        row = torch.tensor(bits).repeat(side, 1)
        patterns += [row.flatten(), row.t().flatten()]
    return torch.stack(patterns).unique(dim=0)


class RBM(nn.Module):
    def __init__(self, visible, hidden):
        super().__init__()
        self.weight = nn.Parameter(0.05 * torch.randn(hidden, visible))
        self.visible_bias = nn.Parameter(torch.zeros(visible))
        self.hidden_bias = nn.Parameter(torch.zeros(hidden))

    def hidden_given(self, v):
        return torch.sigmoid(F.linear(v, self.weight, self.hidden_bias))

    def visible_given(self, h):
        return torch.sigmoid(F.linear(h, self.weight.t(), self.visible_bias))

    def free_energy(self, v):
        return -(v @ self.visible_bias) - F.softplus(F.linear(v, self.weight, self.hidden_bias)).sum(dim=1)

    @torch.no_grad()
    def gibbs(self, v, steps):
        for _ in range(steps):
            h = torch.bernoulli(self.hidden_given(v))
            v = torch.bernoulli(self.visible_given(h))
        return v

    @torch.no_grad()
    def assign_gradients(self, positive, negative):
        """Gradient of the mean free energy of the data minus that of the chains."""
        h_pos, h_neg = self.hidden_given(positive), self.hidden_given(negative)
        self.weight.grad = h_neg.t() @ negative / len(negative) - h_pos.t() @ positive / len(positive)
        self.visible_bias.grad = negative.mean(dim=0) - positive.mean(dim=0)
        self.hidden_bias.grad = h_neg.mean(dim=0) - h_pos.mean(dim=0)


class Chains:
    def __init__(self, count, visible):
        self.state = torch.bernoulli(torch.full((count, visible), 0.5))

    def advance(self, rbm, steps):
        self.state.copy_(rbm.gibbs(self.state, steps))
        return self.state


@torch.no_grad()
def log_partition(rbm):
    """Exact, by summing over all visible states."""
    count = rbm.visible_bias.numel()
    codes = torch.arange(2 ** count).unsqueeze(1)
    states = (codes >> torch.arange(count)).bitwise_and(1).float()
    return torch.logsumexp(-rbm.free_energy(states), dim=0)


@torch.no_grad()
def log_likelihood(rbm, data):
    return (-rbm.free_energy(data) - log_partition(rbm)).mean().item()


def train(rbm, data, steps=1500, chains=128, lr=0.1):
    chain = Chains(chains, data.shape[1])
    optimizer = torch.optim.SGD([
        {"params": [rbm.weight], "weight_decay": 1e-4},
        {"params": [rbm.visible_bias, rbm.hidden_bias]},
    ], lr=lr, momentum=0.5)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=steps)
    for step in range(1, steps + 1):
        rbm.assign_gradients(data, chain.advance(rbm, steps=2))
        optimizer.step()
        schedule.step()
        if step % 300 == 0:
            print(f"{step:5d}  log-likelihood {log_likelihood(rbm, data):.3f}")
    return optimizer


if __name__ == "__main__":
    torch.manual_seed(2)
    data = bars_and_stripes()
    rbm = RBM(visible=16, hidden=24)
    print(f"      start  {log_likelihood(rbm, data):.3f}   uniform over the patterns {-torch.tensor(float(len(data))).log().item():.3f}")
    optimizer = train(rbm, data)

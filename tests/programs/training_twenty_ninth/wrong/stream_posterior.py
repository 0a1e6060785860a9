"""Streaming variational Bayes: a Bayesian classifier takes in records day by day and keeps no old data."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class BayesLinear(nn.Module):
    """Linear layer with a factorised Gaussian over weights and biases."""

    def __init__(self, fan_in, fan_out, prior_std=1.0):
        super().__init__()
        shape = (fan_out, fan_in + 1)
        self.loc = nn.Parameter(0.1 * torch.randn(shape))
        self.rho = nn.Parameter(torch.full(shape, -2.0))
        self.register_buffer("prior_loc", torch.zeros(shape))
        self.register_buffer("prior_rho", torch.full(shape, math.log(math.expm1(prior_std))))

    def forward(self, x):
        """Local reparameterisation: samples the outputs instead of the weights."""
        scale = F.softplus(self.rho)
        mean = F.linear(x, self.loc[:, :-1], self.loc[:, -1])
        var = F.linear(x.pow(2), scale[:, :-1].pow(2), scale[:, -1].pow(2))
        return mean + var.sqrt() * torch.randn_like(mean)

    def kl(self):
        scale, prior_scale = F.softplus(self.rho), F.softplus(self.prior_rho)
        ratio = (scale / prior_scale) ** 2
        shift = ((self.loc - self.prior_loc) / prior_scale) ** 2
        return 0.5 * (ratio + shift - 1 - ratio.log()).sum()

    def carry_over(self):
        """Today's posterior is the prior of tomorrow."""
        self.prior_loc = self.loc.detach()
        self.prior_rho = self.rho.detach()


class Classifier(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.output = BayesLinear(features, classes)

    def forward(self, x):
        return self.output(x)

    def negative_bound(self, x, y):
        """Evidence bound of one day's records, per record and with its sign turned."""
        fit = F.cross_entropy(self(x), y)
        return fit + self.output.kl() / len(x), fit


class Source:
    """Draws the records of a day from a fixed softmax model."""

    def __init__(self, features, classes):
        self.weight = torch.randn(classes, features)

    def records(self, count):
        x = torch.randn(count, self.weight.shape[1])
        y = torch.distributions.Categorical(logits=x @ self.weight.t()).sample()
        return x, y


def take_in(model, x, y, steps=100, lr=4e-2):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=steps)
    for _ in range(steps):
        loss, fit = model.negative_bound(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return loss.item(), fit.item()


@torch.no_grad()
def score(model, x, y, draws=30):
    prob = torch.stack([torch.softmax(model(x), dim=1) for _ in range(draws)]).mean(dim=0)
    nats = F.nll_loss(prob.clamp_min(1e-12).log(), y).item()
    return nats, (prob.argmax(dim=1) == y).float().mean().item()


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    source = Source(features=10, classes=3)
    test = source.records(1000)
    model = Classifier(features=10, classes=3)
    days = []
    for day in range(5):
        x, y = source.records(60)
        loss, fit = take_in(model, x, y)
        nats, accuracy = score(model, *test)
        width = F.softplus(model.output.rho.detach()).mean().item()
        days.append({"loss": loss, "fit": fit, "nats": nats, "accuracy": accuracy, "width": width})
        print(f"day {day}  bound {-loss:.3f}  test nats {nats:.3f}  accuracy {accuracy:.3f}  mean width {width:.3f}")
        model.output.carry_over()
    return model, source, days


if __name__ == "__main__":
    model, source, days = main()

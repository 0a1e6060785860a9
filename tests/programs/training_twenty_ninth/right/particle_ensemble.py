"""Stein variational gradient descent: a set of small Bayesian nets that repel each other."""
import math

import torch


def make_data(count):
    left = -2.0 + 1.2 * torch.rand(count // 2, 1)
    right = 0.8 + 1.2 * torch.rand(count - count // 2, 1)
    x = torch.cat([left, right])
    return x, torch.sin(2 * x) + 0.1 * torch.randn_like(x)


class NetPosterior:
    """Log posterior of a one hidden layer regression net, for many weight vectors at once."""

    def __init__(self, x, y, width=20, noise=0.1, prior=1.0):
        self.x, self.y = x, y
        self.noise, self.prior = noise, prior
        self.shapes = [(1, width), (1, width), (width, 1), (1, 1)]
        self.dim = sum(a * b for a, b in self.shapes)

    def unpack(self, particles):
        sizes = [a * b for a, b in self.shapes]
        parts = particles.split(sizes, dim=1)
        return [part.reshape(-1, *shape) for part, shape in zip(parts, self.shapes)]

    def predict(self, particles, x):
        w1, b1, w2, b2 = self.unpack(particles)
        hidden = torch.tanh(2.0 * (x @ w1 + b1))
        return (hidden @ w2 / math.sqrt(w2.shape[1]) + b2).squeeze(-1)

    def log_prob(self, particles, rows):
        residual = self.predict(particles, self.x[rows]) - self.y[rows].squeeze(-1)
        scale = len(self.x) / len(rows)
        log_lik = -0.5 * scale * (residual / self.noise).pow(2).sum(dim=1)
        return log_lik - 0.5 * (particles / self.prior).pow(2).sum(dim=1)


@torch.no_grad()
def stein_direction(particles, score):
    """phi(x_i) = mean over j of k(x_j, x_i) score_j + grad_{x_j} k(x_j, x_i), median bandwidth."""
    difference = particles.unsqueeze(1) - particles.unsqueeze(0)
    square = difference.pow(2).sum(dim=-1)
    count = len(particles)
    width = square[~torch.eye(count, dtype=torch.bool)].median() / math.log(count)
    kernel = torch.exp(-square / width)
    repulsion = 2 / width * (kernel.unsqueeze(-1) * difference).sum(dim=1)
    return (kernel @ score + repulsion) / count


def spread(values):
    return values.std(dim=0).mean().item()


def fit(posterior, particles, steps, batch=32, lr=3e-2):
    optimizer = torch.optim.Adam([particles], lr=lr)
    history = []
    for step in range(steps):
        rows = torch.randint(0, len(posterior.x), (batch,))
        log_prob = posterior.log_prob(particles, rows)
        (score,) = torch.autograd.grad(log_prob.sum(), particles)
        particles.grad = -stein_direction(particles, score)
        optimizer.step()
        history.append(log_prob.detach().mean())
        if step % 100 == 0 or step == steps - 1:
            recent = torch.stack(history[-20:]).mean().item()
            print(f"step {step:3d}  mean log posterior {recent:.1f}  spread of particles {spread(particles.detach()):.3f}")
    return torch.stack(history)


@torch.no_grad()
def report(posterior, particles):
    inside = posterior.predict(particles, posterior.x)
    rmse = (inside.mean(dim=0) - posterior.y.squeeze(-1)).pow(2).mean().sqrt().item()
    gap = posterior.predict(particles, torch.linspace(-0.6, 0.6, 20).unsqueeze(1))
    beyond = posterior.predict(particles, torch.linspace(3.0, 4.0, 20).unsqueeze(1))
    print(f"rmse at the data {rmse:.3f}")
    print(f"spread at the data {spread(inside):.3f}  in the gap {spread(gap):.3f}  beyond {spread(beyond):.3f}")
    return rmse, spread(inside), spread(gap), spread(beyond)


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    x, y = make_data(100)
    posterior = NetPosterior(x, y)
    particles = torch.randn(16, posterior.dim, requires_grad=True)
    history = fit(posterior, particles, steps=221)
    return posterior, particles, history, report(posterior, particles)


if __name__ == "__main__":
    posterior, particles, history, scores = main()

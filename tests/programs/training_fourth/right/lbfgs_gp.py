"""Hyperparameters of a Gaussian process by L-BFGS: marginal likelihood plus a log-normal prior on each of them. The
closure runs one backward pass for the likelihood and one for the prior; their gradients are meant to add up."""
import math

import torch

torch.set_num_threads(1)
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class Hyperparameters:
    def __init__(self):
        self.log_length = torch.tensor(math.log(3.0), requires_grad=True)
        self.log_signal = torch.tensor(0.0, requires_grad=True)
        self.log_noise = torch.tensor(math.log(0.5), requires_grad=True)

    def tensors(self):
        return [self.log_length, self.log_signal, self.log_noise]

    def kernel(self, a, b):
        distance = (a[:, None] - b[None, :]) / self.log_length.exp()
        return (2 * self.log_signal).exp() * torch.exp(-0.5 * distance**2)


def factor(hyper, x):
    noise = (2 * hyper.log_noise).exp() + 1e-8
    return torch.linalg.cholesky(hyper.kernel(x, x) + noise * torch.eye(len(x)))


def negative_log_likelihood(hyper, x, y):
    chol = factor(hyper, x)
    alpha = torch.cholesky_solve(y[:, None], chol).squeeze(1)
    return 0.5 * y @ alpha + chol.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)


def prior_penalty(hyper, centres=(0.0, 0.0, -2.0), width=1.5):
    return sum(0.5 * ((v - c) / width) ** 2 for v, c in zip(hyper.tensors(), centres))


def predict(hyper, x, y, new):
    with torch.no_grad():
        chol = factor(hyper, x)
        cross = hyper.kernel(new, x)
        mean = cross @ torch.cholesky_solve(y[:, None], chol).squeeze(1)
        solved = torch.linalg.solve_triangular(chol, cross.t(), upper=False)
        variance = (2 * hyper.log_signal).exp() - solved.pow(2).sum(0)
    return mean, variance.clamp(min=0).sqrt()


def main():
    x = torch.sort(6 * torch.rand(60)).values
    y = torch.sin(2 * x) + 0.1 * torch.randn(60)
    hyper = Hyperparameters()
    optimizer = torch.optim.LBFGS(hyper.tensors(), max_iter=20, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        likelihood = negative_log_likelihood(hyper, x, y)
        likelihood.backward()
        penalty = prior_penalty(hyper)
        penalty.backward()
        return likelihood.detach() + penalty.detach()

    for outer in range(4):
        value = optimizer.step(closure)
        print(f"round {outer}: objective before it {value.item():.4f}")
    with torch.enable_grad():
        objective = negative_log_likelihood(hyper, x, y) + prior_penalty(hyper)
        gradient = torch.stack(torch.autograd.grad(objective, hyper.tensors()))
    new = torch.linspace(0.3, 5.7, 100)
    mean, std = predict(hyper, x, y, new)
    error = (mean - torch.sin(2 * new)).pow(2).mean().sqrt().item()
    print(f"objective {objective.item():.4f}, gradient norm {gradient.norm().item():.1e}")
    print(f"length {hyper.log_length.exp().item():.3f}, signal {hyper.log_signal.exp().item():.3f}, "
          f"noise {hyper.log_noise.exp().item():.3f}; error {error:.3f}, mean predicted std {std.mean().item():.3f}")


if __name__ == "__main__":
    main()

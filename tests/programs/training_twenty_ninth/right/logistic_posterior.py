"""Black box variational inference for Bayesian logistic regression with a full covariance Gaussian.

The entropy part uses the path derivative estimator of Roeder, Wu and Duvenaud (2017).
"""
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import MultivariateNormal


def make_data(count, dim=4):
    truth = torch.tensor([1.5, -1.0, 0.5, 0.0])
    mixing = torch.eye(dim) + 0.6 * torch.ones(dim, dim).tril(-1)
    x = torch.randn(count, dim) @ mixing
    y = torch.bernoulli(torch.sigmoid(x @ truth))
    return x, y, truth


class GaussianPosterior(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(dim))
        self.raw_diag = nn.Parameter(torch.full((dim,), -1.0))
        self.below = nn.Parameter(torch.zeros(dim, dim))

    def tril(self):
        return torch.tril(self.below, -1) + torch.diag(F.softplus(self.raw_diag) + 1e-5)

    def distribution(self):
        return MultivariateNormal(self.loc, scale_tril=self.tril())

    def frozen_distribution(self):
        return MultivariateNormal(self.loc.detach(), scale_tril=self.tril().detach())


class LogisticModel:
    def __init__(self, x, y, prior_std=3.0):
        self.x, self.y = x, y
        self.prior = torch.distributions.Normal(0.0, prior_std)

    def log_joint(self, weights):
        """Log joint density for a stack of weight vectors (draws, dim)."""
        logits = weights @ self.x.t()
        targets = self.y.expand_as(logits)
        log_lik = -F.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(dim=1)
        return log_lik + self.prior.log_prob(weights).sum(dim=1)


def path_bound(model, posterior, draws):
    weights = posterior.distribution().rsample((draws,))
    log_q = posterior.frozen_distribution().log_prob(weights)
    return (model.log_joint(weights) - log_q).mean()


def fit(model, posterior, steps, draws=6, lr=3e-2):
    optimizer = torch.optim.Adam(posterior.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.99**step)
    for step in range(steps):
        bound = path_bound(model, posterior, draws)
        optimizer.zero_grad()
        (-bound).backward()
        optimizer.step()
        schedule.step()
        if step % 60 == 0 or step == steps - 1:
            print(f"step {step:3d}  bound {bound.item():.2f}")


def laplace(model, start, rounds=20):
    """Mode and covariance by Newton's method, for comparison."""
    mode = start.detach().clone()
    total = lambda w: model.log_joint(w.unsqueeze(0)).sum()
    for _ in range(rounds):
        leaf = mode.clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(total(leaf), leaf)
        hessian = torch.autograd.functional.hessian(total, mode)
        mode = mode - torch.linalg.solve(hessian, gradient)
    return mode, torch.linalg.inv(-torch.autograd.functional.hessian(total, mode))


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    x, y, truth = make_data(300)
    model = LogisticModel(x, y)
    posterior = GaussianPosterior(x.shape[1])
    fit(model, posterior, steps=240)
    mode, covariance = laplace(model, posterior.loc)
    with torch.no_grad():
        scale = posterior.distribution().covariance_matrix.diagonal().sqrt()
    for row in zip(truth, posterior.loc.detach(), scale, mode, covariance.diagonal().sqrt()):
        print("true {:+.2f}  q {:+.3f} +- {:.3f}  Laplace {:+.3f} +- {:.3f}".format(*(v.item() for v in row)))
    return model, posterior, mode, covariance


if __name__ == "__main__":
    model, posterior, mode, covariance = main()

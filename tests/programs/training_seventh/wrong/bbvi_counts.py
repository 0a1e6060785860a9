"""Black-box variational inference for a Poisson regression of bird counts on habitat covariates."""
import math

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal, Poisson


def survey(n, rng):
    x = rng.standard_normal((n, 5))
    x[:, 3] = 0.6 * x[:, 0] + 0.8 * x[:, 3]
    beta = np.array([0.7, -0.5, 0.0, 0.4, -0.3])
    rate = np.exp(0.6 + x @ beta)
    y = rng.poisson(rate)
    design = np.concatenate([np.ones((n, 1)), x], axis=1)
    return torch.tensor(design, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class MeanField(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(dim))
        self.rho = nn.Parameter(torch.full((dim,), -1.0))

    def q(self):
        return Normal(self.loc, nn.functional.softplus(self.rho))


class PoissonModel:
    def __init__(self, x, y, prior_scale=2.0):
        self.x, self.y = x, y
        self.prior = Normal(0.0, prior_scale)

    def log_joint(self, w):
        eta = (w @ self.x.T).clamp(max=6.0)
        loglik = Poisson(eta.exp()).log_prob(self.y).sum(-1)
        return loglik + self.prior.log_prob(w).sum(-1)


class RunningBaseline:
    def __init__(self, decay=0.9):
        self.decay, self.value, self.spread = decay, None, 1.0

    def advantage(self, reward):
        if self.value is None:
            self.value = reward.mean().item()
            self.spread = reward.std().item()
        adv = (reward - self.value) / (self.spread + 1e-6)
        self.value = self.decay * self.value + (1 - self.decay) * reward.mean().item()
        self.spread = self.decay * self.spread + (1 - self.decay) * reward.std().item()
        return adv.clamp(-5, 5)


def surrogate(guide, model, baseline, samples):
    q = guide.q()
    w = q.rsample((samples,))
    log_q = q.log_prob(w).sum(-1)
    with torch.no_grad():
        reward = model.log_joint(w) - log_q
        adv = baseline.advantage(reward)
    return -(adv * log_q).mean(), reward.mean().item()


def infer(guide, model, iterations=900, samples=32, lr=0.02):
    opt = torch.optim.Adam(guide.parameters(), lr=lr)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=300, gamma=0.5)
    baseline, trace = RunningBaseline(), []
    for i in range(iterations):
        loss, elbo = surrogate(guide, model, baseline, samples)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        trace.append(elbo)
        if i % 180 == 0:
            print(f"iter {i:4d}  elbo {np.mean(trace[-50:]):.1f}")
    return trace


def predictive(guide, x, y, gen_seed=0):
    torch.manual_seed(gen_seed)
    with torch.no_grad():
        w = guide.q().sample((200,))
        lp = Poisson((w @ x.T).clamp(max=6.0).exp()).log_prob(y)
        return (torch.logsumexp(lp, 0) - math.log(200)).mean().item()


if __name__ == "__main__":
    torch.manual_seed(12)
    rng = np.random.default_rng(30)
    x, y = survey(160, rng)
    x_new, y_new = survey(80, rng)
    guide = MeanField(x.shape[1])
    trace = infer(guide, PoissonModel(x, y))
    print("final elbo", round(float(np.mean(trace[-50:])), 1))
    print("predictive log score", round(predictive(guide, x_new, y_new), 3))

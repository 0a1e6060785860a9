"""Uplift of a coupon with the R-learner: cross-fitted nuisance models, then an effect model on residuals."""
import copy
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    n_users: int = 4000
    n_features: int = 8
    folds: int = 2
    nuisance_steps: int = 300
    effect_steps: int = 500
    batch_size: int = 256
    lr: float = 3e-3
    seed: int = 5


def make_users(cfg, rng, n):
    x = rng.normal(size=(n, cfg.n_features)).astype(np.float32)
    tau = 0.8 * np.tanh(x[:, 0]) + 0.4 * (x[:, 1] > 0)
    base = 1.5 * np.sin(x[:, 2]) + x[:, 3] + 0.8 * x[:, 0]
    propensity = 1 / (1 + np.exp(-(0.8 * x[:, 3] + 0.6 * x[:, 0])))
    t = (rng.random(n) < propensity).astype(np.float32)
    y = base + t * tau + rng.normal(0, 0.5, n)
    as_tensor = lambda a: torch.as_tensor(a, dtype=torch.float32)
    return as_tensor(x), as_tensor(t), as_tensor(y), as_tensor(tau)


def mlp(n_in):
    return nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1), nn.Flatten(0))


def fit(model, loss_fn, tensors, steps, cfg, weight_decay=1e-4):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=weight_decay)
    n = len(tensors[0])
    for _ in range(steps):
        idx = torch.randint(n, (cfg.batch_size,))
        loss = loss_fn(model(tensors[0][idx]), *(t[idx] for t in tensors[1:]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    return model


@torch.no_grad()
def cross_fit(x, t, y, cfg):
    """Out-of-fold predictions of E[y|x] and P(t=1|x)."""
    m_hat, e_hat = torch.empty_like(y), torch.empty_like(t)
    fold = torch.randperm(len(x)) % cfg.folds
    template = mlp(x.shape[1])
    for k in range(cfg.folds):
        train, held = fold != k, fold == k
        with torch.enable_grad():
            outcome = fit(copy.deepcopy(template), F.mse_loss, (x[train], y[train]), cfg.nuisance_steps, cfg)
            treated = fit(copy.deepcopy(template), F.binary_cross_entropy_with_logits, (x[train], t[train]),
                          cfg.nuisance_steps, cfg)
        m_hat[held] = outcome(x[held])
        e_hat[held] = treated(x[held]).sigmoid().clamp(0.03, 0.97)
    return m_hat, e_hat


def r_loss(tau_hat, y_res, t_res):
    return ((y_res - t_res * tau_hat) ** 2).mean()


def uplift_at(score, tau, share=0.3):
    top = score.argsort(descending=True)[: int(len(score) * share)]
    return tau[top].mean().item()


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    x, t, y, _ = make_users(cfg, rng, cfg.n_users)
    x_test, _, _, tau_test = make_users(cfg, rng, 4000)

    m_hat, e_hat = cross_fit(x, t, y, cfg)
    print(f"residual var {(y - m_hat).var().item():.3f} of {y.var().item():.3f}, mean propensity {e_hat.mean().item():.3f}")

    effect = fit(mlp(cfg.n_features), r_loss, (x, y - m_hat, t - e_hat), cfg.effect_steps, cfg, weight_decay=1e-2)
    with torch.no_grad():
        tau_hat = effect(x_test)
    naive = y[t == 1].mean() - y[t == 0].mean()
    rmse = (tau_hat - tau_test).pow(2).mean().sqrt().item()
    print(f"naive difference {naive.item():.3f}, mean effect {tau_hat.mean().item():.3f}, true {tau_test.mean().item():.3f}")
    print(f"effect rmse {rmse:.3f} (spread of the true effect {tau_test.std().item():.3f})")
    print(f"uplift in the top 30%: model {uplift_at(tau_hat, tau_test):.3f}, best {uplift_at(tau_test, tau_test):.3f}")


if __name__ == "__main__":
    main()

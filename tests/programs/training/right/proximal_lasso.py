"""Sparse linear regression by proximal gradient steps."""
import torch
import torch.nn as nn
import torch.nn.functional as F


@torch.no_grad()
def soft_threshold_(weight, amount):
    weight.copy_(weight.sign() * (weight.abs() - amount).clamp(min=0))


@torch.no_grad()
def l1_norm(model):
    return model.weight.abs().sum().item()


def problem(n, dim=30, active=5):
    w = torch.zeros(dim)
    w[:active] = torch.tensor([2.0, -1.5, 1.0, 3.0, -2.5])
    x = torch.randn(n, dim)
    return x, (x @ w + 0.5 + 0.1 * torch.randn(n)).unsqueeze(1), w


def main(lam=0.1, lr=0.05):
    torch.manual_seed(30)
    x, y, w_true = problem(200)
    model = nn.Linear(30, 1)
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    for step in range(200):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        soft_threshold_(model.weight, lr * lam)
        if step % 50 == 49:
            nonzero = int((model.weight != 0).sum())
            print(f"step {step}: mse {loss.item():.4f} l1 {l1_norm(model):.3f} nonzero {nonzero}")
    error = (model.weight.detach().squeeze(0) - w_true).abs().max().item()
    print(f"largest coefficient error {error:.3f}")


if __name__ == "__main__":
    main()

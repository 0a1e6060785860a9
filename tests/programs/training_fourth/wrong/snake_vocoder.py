"""Fit a periodic audio signal with a coordinate network that uses Snake activations with learnable frequency."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)


class SnakeFunction(torch.autograd.Function):
    """x + sin(alpha * x)^2 / alpha with one alpha per channel; saves memory by keeping only the inputs."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x, alpha)
        return x + torch.sin(alpha * x) ** 2 / alpha

    @staticmethod
    def backward(ctx, grad_output):
        x, alpha = ctx.saved_tensors
        wave = torch.sin(2 * alpha * x)
        grad_x = grad_output * (1 + wave)
        grad_alpha = wave * x / alpha - torch.sin(alpha * x) ** 2 / alpha ** 2
        return grad_x, grad_alpha.sum(0)


class Snake(nn.Module):
    def __init__(self, channels, alpha=4.0):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((channels,), alpha))

    def forward(self, x):
        return SnakeFunction.apply(x, self.alpha)


def note(t):
    envelope = 0.7 + 0.3 * torch.cos(2.1 * t)
    return envelope * (torch.sin(9.0 * t) + 0.5 * torch.sin(18.0 * t + 0.4))


class Generator(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.inp = nn.Linear(1, hidden)
        self.act1 = Snake(hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.act2 = Snake(hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, t):
        h = self.act1(self.inp(t))
        h = self.act2(self.mid(h))
        return self.out(h)


def fit(model, steps=700, batch=128):
    alphas = [p for n, p in model.named_parameters() if n.endswith("alpha")]
    weights = [p for n, p in model.named_parameters() if not n.endswith("alpha")]
    optimizer = torch.optim.Adam([{"params": weights, "lr": 3e-3}, {"params": alphas, "lr": 1e-2}])
    for step in range(steps):
        t = 4 * torch.rand(batch, 1) - 2
        loss = F.mse_loss(model(t), note(t))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            mean_alpha = torch.cat(alphas).mean().item()
            print(f"step {step:3d} loss {loss.item():.4f} mean alpha {mean_alpha:.2f}")
    return model


if __name__ == "__main__":
    model = fit(Generator())
    grid = torch.linspace(-2, 2, 1000)[:, None]
    with torch.no_grad():
        error = F.mse_loss(model(grid), note(grid)).item()
    print(f"reconstruction error {error:.4f} (signal power {note(grid).pow(2).mean().item():.3f})")

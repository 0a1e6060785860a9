"""Identify a nonlinear conductivity from steady temperature profiles.

The profile is the fixed point of a damped relaxation sweep; parameters are
trained through the fixed point with the implicit function theorem.
"""
import torch
from torch import nn

torch.manual_seed(4)

CELLS = 24
DAMP = 0.9


class Conductivity(nn.Module):
    """Positive k(T), multiplied by a known material profile along the rod."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
        self.register_buffer("material", 1 + 0.3 * torch.sin(torch.linspace(0, 3, CELLS + 1)))

    def forward(self, temperature):
        mid = 0.5 * (temperature[:, 1:] + temperature[:, :-1])
        return self.material * (0.2 + nn.functional.softplus(self.net(mid.unsqueeze(-1)).squeeze(-1)))


class TrueConductivity(Conductivity):
    def forward(self, temperature):
        mid = 0.5 * (temperature[:, 1:] + temperature[:, :-1])
        return self.material * (0.5 + 0.8 * mid ** 2)


def solve_rod(k, source, left, right):
    """Temperatures of a rod whose face conductivities are k (exact linear solve)."""
    diag = k[:, :-1] + k[:, 1:]
    matrix = torch.diag_embed(diag)
    matrix = matrix - torch.diag_embed(k[:, 1:-1], offset=1) - torch.diag_embed(k[:, 1:-1], offset=-1)
    rhs = source / CELLS ** 2
    edge = torch.zeros_like(rhs)
    edge = edge + nn.functional.pad(k[:, :1] * left, (0, CELLS - 1))
    edge = edge + nn.functional.pad(k[:, -1:] * right, (CELLS - 1, 0))
    return torch.linalg.solve(matrix, (rhs + edge).unsqueeze(-1)).squeeze(-1)


def sweep(model, inner, problem):
    source, left, right = problem
    full = torch.cat([left, inner, right], dim=1)
    return (1 - DAMP) * inner + DAMP * solve_rod(model(full), source, left, right)


def steady_state(model, problem, tol=1e-6, max_iter=60):
    source = problem[0]
    inner = torch.zeros_like(source)
    with torch.no_grad():
        for _ in range(max_iter):
            new = sweep(model, inner, problem)
            gap = (new - inner).abs().max()
            inner = new
            if gap < tol:
                break
    if not torch.is_grad_enabled():
        return inner

    out = sweep(model, inner, problem)
    start = inner.detach().requires_grad_(True)
    replay = sweep(model, start, problem)

    def adjoint(grad):
        v = grad
        for _ in range(max_iter):
            new = grad + torch.autograd.grad(replay, start, v, retain_graph=True)[0]
            if (new - v).abs().max() < tol * grad.abs().max():
                return new
            v = new
        return v

    out.register_hook(adjoint)
    return out


def make_problems(n):
    source = (2 * torch.rand(n, 1) + torch.rand(n, CELLS))
    return source, torch.rand(n, 1), torch.rand(n, 1)


def main(steps=40):
    truth = TrueConductivity().requires_grad_(False)
    train, test = make_problems(24), make_problems(24)
    with torch.no_grad():
        y_train, y_test = steady_state(truth, train), steady_state(truth, test)
    model = Conductivity()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for step in range(1, steps + 1):
        loss = (steady_state(model, train) - y_train).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            with torch.no_grad():
                error = (steady_state(model, test) - y_test).abs().mean()
            print(f"step {step:3d}  loss {loss.item():.2e}  test error {error.item():.4f}")
    return model, train, y_train


if __name__ == "__main__":
    model, train, y_train = main()

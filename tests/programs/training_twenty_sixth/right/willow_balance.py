"""An equilibrium layer (DEQ) that predicts the settled water level of connected ponds."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def fixed_point(f, start, tol=1e-6, max_iter=80):
    z = start
    for _ in range(max_iter):
        z_next = f(z)
        if (z_next - z).norm() < tol * (1e-6 + z_next.norm()):
            return z_next
        z = z_next
    return z


class Cell(nn.Module):
    """z -> tanh(W z + U x + b), W scaled to be a contraction."""

    def __init__(self, n_in, width, bound=0.7):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.inject = nn.Linear(n_in, width)
        self.bound = bound

    def forward(self, z, x):
        # the row-sum norm bounds the Lipschitz constant in the max norm
        norm = self.raw.abs().sum(dim=1).max()
        weight = self.raw * (self.bound / norm.clamp(min=self.bound))
        return torch.tanh(z @ weight.t() + self.inject(x))


class EquilibriumLayer(nn.Module):
    def __init__(self, n_in, width):
        super().__init__()
        self.cell = Cell(n_in, width)
        self.width = width

    def forward(self, x):
        with torch.no_grad():
            z = fixed_point(lambda z: self.cell(z, x), x.new_zeros(len(x), self.width))
        z = self.cell(z, x)
        if not torch.is_grad_enabled():
            return z

        z0 = z.detach().requires_grad_()
        f0 = self.cell(z0, x)

        def solve_adjoint(grad):
            return fixed_point(lambda g: torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad, grad)

        z.register_hook(solve_adjoint)
        return z


class PondNet(nn.Module):
    def __init__(self, n_in=6, width=24):
        super().__init__()
        self.eq = EquilibriumLayer(n_in, width)
        self.head = nn.Linear(width, 6)

    def forward(self, x):
        return self.head(self.eq(x))


def make_ponds(n, gen):
    """Levels h that solve h = tanh(0.8 A h + inflow) for a fixed network A."""
    a = torch.rand(6, 6, generator=torch.Generator().manual_seed(77))
    a = a / a.sum(dim=1, keepdim=True)
    inflow = torch.randn(n, 6, generator=gen)
    level = fixed_point(lambda h: torch.tanh(0.8 * h @ a.t() + inflow), torch.zeros(n, 6), max_iter=200)
    return inflow, level


def main(steps=150, batch_size=64, lr=5e-3, seed=13):
    torch.manual_seed(seed)
    gen = torch.Generator().manual_seed(seed)
    x, y = make_ponds(2000, gen)
    x_test, y_test = make_ponds(400, gen)
    model = PondNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(1, steps + 1):
        idx = torch.randint(0, len(x), (batch_size,), generator=gen)
        loss = F.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.5f}")
    with torch.no_grad():
        test_mse = F.mse_loss(model(x_test), y_test).item()
    print(f"test mse {test_mse:.5f}  (variance {y_test.var().item():.4f})")
    return model, test_mse, x_test, y_test


if __name__ == "__main__":
    model, test_mse, x_test, y_test = main()

"""Deep-equilibrium classifier: one recurrent cell iterated to its fixed point, trained by implicit differentiation."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def fixed_point(f, z, tol=1e-6, max_iter=80):
    for _ in range(max_iter):
        z_next = f(z)
        if (z_next - z).norm() <= tol * (1e-8 + z.norm()):
            return z_next
        z = z_next
    return z


class Cell(nn.Module):
    """z <- tanh(W z + U x + b) with the spectral norm of W held below one, so that the iteration contracts."""

    def __init__(self, d_in, d_state, bound=0.8):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(d_state, d_state) / d_state ** 0.5)
        self.inject = nn.Linear(d_in, d_state)
        self.bound = bound

    def forward(self, z, x):
        w = self.bound * self.raw / torch.linalg.matrix_norm(self.raw, ord="fro").clamp(min=self.bound)
        return torch.tanh(z @ w.t() + self.inject(x))


class Equilibrium(nn.Module):
    def __init__(self, cell, d_state):
        super().__init__()
        self.cell, self.d_state = cell, d_state

    def forward(self, x):
        with torch.no_grad():
            z = fixed_point(lambda z: self.cell(z, x), torch.zeros(len(x), self.d_state))
        if not torch.is_grad_enabled():
            return z

        z = self.cell(z, x)
        z0 = z.detach().requires_grad_()
        f0 = self.cell(z0, x)

        def solve_adjoint(grad):
            # g = grad + J^T g, with J the derivative of the cell at the equilibrium
            return fixed_point(lambda g: torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad, grad)

        z.register_hook(solve_adjoint)
        return z


class DEQClassifier(nn.Module):
    def __init__(self, d_in=2, d_state=24, n_classes=3):
        super().__init__()
        self.core = Equilibrium(Cell(d_in, d_state), d_state)
        self.readout = nn.Linear(d_state, n_classes)

    def forward(self, x):
        return self.readout(self.core(x))


def make_spirals(n, seed, n_arms=3):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_arms, (n,), generator=g)
    r = torch.rand(n, generator=g) * 0.9 + 0.1
    angle = 2.5 * r + y * (2 * torch.pi / n_arms) + 0.15 * torch.randn(n, generator=g)
    return 3 * torch.stack([r * angle.cos(), r * angle.sin()], dim=1), y


def main():
    torch.manual_seed(4)
    x, y = make_spirals(600, seed=0)
    x_test, y_test = make_spirals(600, seed=1)
    model = DEQClassifier()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(1, 13):
        for idx in torch.randperm(len(x)).split(60):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 3 == 0:
            with torch.no_grad():
                acc = (model(x_test).argmax(1) == y_test).float().mean()
            print(f"epoch {epoch:2d}  loss {loss.item():.4f}  test accuracy {acc:.3f}")
    return model


if __name__ == "__main__":
    model = main()

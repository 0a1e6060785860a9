"""Deep equilibrium model: implicit layer with a fixed-point solver in both directions."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def solve(f, z0, max_iter, tol):
    z = z0
    for k in range(max_iter):
        z_next = f(z)
        gap = (z_next - z).norm() / (1e-6 + z_next.norm())
        z = z_next
        if gap < tol:
            break
    return z, k + 1


class Cell(nn.Module):
    def __init__(self, in_dim, dim, spectral=0.9):
        super().__init__()
        self.recurrent = nn.Linear(dim, dim, bias=False)
        self.inject = nn.Linear(in_dim, dim)
        self.spectral = spectral
        nn.init.orthogonal_(self.recurrent.weight)

    def forward(self, z, x):
        weight = self.recurrent.weight
        weight = self.spectral * weight / torch.linalg.matrix_norm(weight, 2).clamp(min=1.0)
        return torch.tanh(F.linear(z, weight) + self.inject(x))


class DEQ(nn.Module):
    def __init__(self, in_dim, dim, max_iter=40, tol=1e-4):
        super().__init__()
        self.cell = Cell(in_dim, dim)
        self.max_iter, self.tol = max_iter, tol
        self.dim = dim
        self.iterations = (0, 0)

    def forward(self, x):
        with torch.no_grad():
            z_star, n_forward = solve(
                lambda z: self.cell(z, x), torch.zeros(x.size(0), self.dim), self.max_iter, self.tol)
        z = self.cell(z_star, x)
        if not self.training:
            return z
        z0 = z.clone().detach().requires_grad_()
        f0 = self.cell(z0, x)

        def implicit_backward(grad):
            g, n_backward = solve(
                lambda y: torch.autograd.grad(f0, z0, y, retain_graph=True)[0] + grad,
                grad, self.max_iter, self.tol)
            self.iterations = (n_forward, n_backward)
            grad = g

        z.register_hook(implicit_backward)
        return z


class Regressor(nn.Module):
    def __init__(self, in_dim=12, dim=24):
        super().__init__()
        self.deq = DEQ(in_dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 1)

    def forward(self, x):
        return self.head(self.norm(self.deq(x))).squeeze(-1)


def target(x):
    return torch.sin(x[:, 0] * 2) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3:].mean(1)


torch.manual_seed(18)
x_train, x_test = torch.randn(768, 12), torch.randn(256, 12)
y_train, y_test = target(x_train), target(x_test)
model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(10):
    model.train()
    total = 0.0
    for idx in torch.randperm(x_train.size(0)).split(64):
        loss = F.mse_loss(model(x_train[idx]), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * idx.numel()
    model.eval()
    with torch.no_grad():
        test_loss = F.mse_loss(model(x_test), y_test).item()
    print(f"epoch {epoch} train {total / x_train.size(0):.3f} test {test_loss:.3f} solver {model.deq.iterations}")

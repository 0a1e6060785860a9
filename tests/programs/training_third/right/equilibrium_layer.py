import torch
import torch.nn as nn
import torch.nn.functional as F


def fixed_point(f, start, tol=1e-5, limit=60):
    z = start
    for _ in range(limit):
        following = f(z)
        if (following - z).norm() < tol * (1 + following.norm()):
            return following
        z = following
    return z


class Cell(nn.Module):
    def __init__(self, width, limit=0.8):
        super().__init__()
        self.weight = nn.Parameter(0.1 * torch.randn(width, width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.limit = limit

    def matrix(self):
        norm = torch.linalg.matrix_norm(self.weight, ord=2)
        return self.weight * (self.limit / norm.clamp(min=self.limit))

    def forward(self, z, x):
        return torch.tanh(z @ self.matrix().T + x + self.bias)


class Equilibrium(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell = Cell(width)

    def forward(self, x):
        with torch.no_grad():
            z = fixed_point(lambda s: self.cell(s, x), torch.zeros_like(x))
        z = self.cell(z, x)
        if not torch.is_grad_enabled():
            return z
        anchor = z.detach().requires_grad_()
        image = self.cell(anchor, x.detach())

        def solve(grad):
            def pull(v):
                return grad + torch.autograd.grad(image, anchor, v, retain_graph=True)[0]

            return fixed_point(pull, torch.zeros_like(grad))

        z.register_hook(solve)
        return z


class Model(nn.Module):
    def __init__(self, n_in=8, width=20, classes=3):
        super().__init__()
        self.inject = nn.Linear(n_in, width)
        self.core = Equilibrium(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.core(self.inject(x)))


def make_data(n=300):
    x = torch.randn(n, 8)
    return x, (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 1).long()


def main(epochs=6):
    torch.manual_seed(0)
    x, y = make_data()
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for idx in torch.randperm(256).split(64):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            heldout = F.cross_entropy(model(x[256:]), y[256:]).item()
        print(f"epoch {epoch} loss {loss.item():.4f} heldout {heldout:.4f}")
    return model


if __name__ == "__main__":
    model = main()

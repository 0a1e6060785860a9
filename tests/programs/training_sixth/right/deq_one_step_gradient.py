"""Deep equilibrium classifier trained with the one-step (Jacobian-free) gradient."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ContractiveCell(nn.Module):
    def __init__(self, in_dim, dim):
        super().__init__()
        self.weight = nn.Parameter(0.3 * torch.randn(dim, dim) / dim ** 0.5)
        self.inject = nn.Linear(in_dim, dim)

    def forward(self, z, injected):
        return torch.tanh(F.linear(z, self.weight) + injected)

    @torch.no_grad()
    def project(self, bound=0.8):
        norm = torch.linalg.matrix_norm(self.weight, 2)
        if norm > bound:
            self.weight.mul_(bound / norm)


class JacobianFreeDEQ(nn.Module):
    def __init__(self, in_dim, dim, classes, max_iter=30, tol=1e-4):
        super().__init__()
        self.cell = ContractiveCell(in_dim, dim)
        self.head = nn.Linear(dim, classes)
        self.max_iter, self.tol = max_iter, tol
        self.register_buffer("mean_iterations", torch.tensor(0.0), persistent=False)

    @torch.no_grad()
    def equilibrium(self, injected):
        z = torch.zeros_like(injected)
        for k in range(self.max_iter):
            new = self.cell(z, injected)
            converged = (new - z).abs().max() < self.tol
            z = new
            if converged:
                break
        self.mean_iterations.lerp_(torch.tensor(float(k + 1)), 0.1)
        return z

    def forward(self, x):
        injected = self.cell.inject(x)
        z_star = self.equilibrium(injected)
        z = self.cell(z_star, injected)
        return self.head(z)


def make_data(n, w):
    x = torch.randn(n, w.size(0))
    hidden = torch.tanh(x @ w)
    return x, (hidden[:, :3] + hidden[:, 3:6] * hidden[:, 6:9]).argmax(1)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    result = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return result


torch.manual_seed(19)
w = torch.randn(10, 9)
x, y = make_data(1500, w)
x_test, y_test = make_data(500, w)
model = JacobianFreeDEQ(10, 40, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[10], gamma=0.3)
for epoch in range(15):
    total = 0.0
    for idx in torch.randperm(x.size(0)).split(75):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.cell.project()
        total += loss.item()
    scheduler.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch} loss {total / 20:.3f} test {accuracy(model, x_test, y_test):.3f} "
              f"iterations {model.mean_iterations.item():.1f}")

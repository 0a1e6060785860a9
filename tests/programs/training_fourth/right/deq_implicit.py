"""A deep-equilibrium regressor with exact implicit gradients: the forward solve runs without a graph, and a hook on
the fixed point solves the adjoint equation in the backward pass."""
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


def solve(function, start, max_iter=40, tol=1e-6):
    z = start
    for _ in range(max_iter):
        new = function(z)
        if (new - z).norm() <= tol * new.norm().clamp(min=1e-8):
            return new
        z = new
    return z


class Equilibrium(nn.Module):
    def __init__(self, features=6, hidden=24):
        super().__init__()
        self.inject = nn.Linear(features, hidden)
        self.recurrent = nn.Linear(hidden, hidden, bias=False)
        nn.init.orthogonal_(self.recurrent.weight, gain=0.6)
        self.head = nn.Linear(hidden, 1)

    def cell(self, z, injection):
        return torch.tanh(self.recurrent(z) + injection)

    def forward(self, x):
        injection = self.inject(x)
        with torch.no_grad():
            z = solve(lambda z: self.cell(z, injection), torch.zeros_like(injection))
        z = self.cell(z, injection)
        if z.requires_grad:
            anchor = z.detach().requires_grad_()
            image = self.cell(anchor, injection.detach())

            def adjoint(grad):
                def step(g):
                    return torch.autograd.grad(image, anchor, g, retain_graph=True)[0] + grad

                return solve(step, grad)

            z.register_hook(adjoint)
        return self.head(z).squeeze(1)


def unrolled(model, x, depth=80):
    injection = model.inject(x)
    z = torch.zeros_like(injection)
    for _ in range(depth):
        z = model.cell(z, injection)
    return model.head(z).squeeze(1)


def gradients(model, loss):
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def target(x):
    return torch.sin(2 * x[:, 0]) * x[:, 1] + 0.5 * x[:, 2]


model = Equilibrium()
train_x, test_x = torch.randn(1024, 6), torch.randn(512, 6)
train_y, test_y = target(train_x), target(test_x)

a = gradients(model, F.mse_loss(model(train_x), train_y))
b = gradients(model, F.mse_loss(unrolled(model, train_x), train_y))
print(f"implicit against unrolled gradient: relative difference {((a - b).norm() / b.norm()).item():.1e}")

optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(12):
    for index in torch.randperm(len(train_x)).split(64):
        loss = F.mse_loss(model(train_x[index]), train_y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}  loss {loss.item():.4f}")
with torch.no_grad():
    error = F.mse_loss(model(test_x), test_y).item()
print(f"test error {error:.4f}, variance of the target {test_y.var().item():.4f}")

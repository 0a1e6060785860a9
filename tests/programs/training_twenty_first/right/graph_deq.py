"""Implicit graph network: node states at a fixed point, trained with the implicit function theorem."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)
N, CLASSES, FEATS, WIDTH = 300, 3, 10, 24


def make_graph():
    """A stochastic block model; only some nodes carry informative features."""
    y = torch.randint(0, CLASSES, (N,))
    same = y[:, None] == y[None, :]
    upper = (torch.rand(N, N) < torch.where(same, 0.06, 0.006)).triu(1)
    adj = (upper | upper.T).float() + torch.eye(N)
    deg = adj.sum(1)
    means = torch.randn(CLASSES, FEATS)
    x = torch.randn(N, FEATS)
    informative = torch.rand(N) < 0.4
    x[informative] += 1.5 * means[y[informative]]
    return x, adj / (deg[:, None] * deg[None, :]).sqrt(), y


class ImplicitLayer(nn.Module):
    def __init__(self, kappa=0.9, tol=1e-5, max_iter=60):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH) / WIDTH ** 0.5)
        self.inject = nn.Linear(FEATS, WIDTH)
        self.kappa, self.tol, self.max_iter = kappa, tol, max_iter
        self.iterations = 0

    def contraction(self):
        """The weight scaled so that its infinity norm stays below kappa."""
        size = self.weight.abs().sum(0).max()
        return self.weight * (self.kappa / size).clamp(max=1.0)

    def cell(self, z, w, adj, u):
        return torch.tanh(adj @ z @ w + u)

    def solve(self, f, start):
        z = start
        for i in range(self.max_iter):
            nxt = f(z)
            gap = (nxt - z).norm() / nxt.norm().clamp(min=1e-8)
            z = nxt
            if gap < self.tol:
                break
        self.iterations = i + 1
        return z

    def forward(self, x, adj):
        u, w = self.inject(adj @ x), self.contraction()
        with torch.no_grad():
            fixed = self.solve(lambda z: self.cell(z, w, adj, u), torch.zeros_like(u))
        z = self.cell(fixed, w, adj, u)
        if z.requires_grad:
            z0 = fixed.clone().requires_grad_()
            f0 = self.cell(z0, w.detach(), adj, u.detach())

            def implicit(grad):
                def step(g):
                    return torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
                return self.solve(step, grad)

            z.register_hook(implicit)
        return z


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = ImplicitLayer()
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, adj):
        return self.head(F.dropout(self.layer(x, adj), 0.2, self.training))


x, adj, y = make_graph()
order = torch.randperm(N)
train, test = order[:60], order[60:]
net = Net()
optimizer = torch.optim.Adam([
    {"params": net.layer.parameters(), "lr": 1e-2, "weight_decay": 1e-3},
    {"params": net.head.parameters(), "lr": 1e-2, "weight_decay": 5e-3}])

for epoch in range(60):
    net.train()
    loss = F.cross_entropy(net(x, adj)[train], y[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (epoch + 1) % 15 == 0:
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, backward solver iterations {net.layer.iterations}")

net.eval()
with torch.no_grad():
    logits = net(x, adj)
hits = (logits.argmax(1) == y).float()
print(f"train accuracy {hits[train].mean().item():.3f}  test accuracy {hits[test].mean().item():.3f}")

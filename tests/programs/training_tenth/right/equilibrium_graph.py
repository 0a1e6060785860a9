import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
NODES, FEATURES, CLASSES = 240, 10, 3


def make_graph():
    label = torch.randint(CLASSES, (NODES,))
    same = label[:, None] == label[None, :]
    chance = torch.where(same, torch.tensor(0.06), torch.tensor(0.008))
    edges = torch.triu((torch.rand(NODES, NODES) < chance).float(), diagonal=1)
    adjacency = edges + edges.T + torch.eye(NODES)
    scale = adjacency.sum(1).rsqrt()
    adjacency = scale[:, None] * adjacency * scale[None, :]
    x = torch.randn(CLASSES, FEATURES)[label] * 0.5 + torch.randn(NODES, FEATURES)
    return adjacency, x, label


def solve(step, start, tolerance=1e-6, limit=120):
    value = start
    for _ in range(limit):
        following = step(value)
        gap = (following - value).norm() / following.norm().clamp(min=1e-9)
        value = following
        if gap < tolerance:
            break
    return value


class EquilibriumLayer(nn.Module):
    def __init__(self, features, width, contraction=0.9):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(width, width) * 0.2)
        self.inject = nn.Linear(features, width)
        self.contraction = contraction
        self.register_buffer("warm_start", torch.zeros(NODES, width))

    def kernel(self):
        size = torch.linalg.matrix_norm(self.mix, 2)
        return self.mix * (self.contraction / size.clamp(min=self.contraction))

    def forward(self, adjacency, x):
        kernel, source = self.kernel(), self.inject(x)

        def step(z):
            return torch.tanh(adjacency @ z @ kernel + source)

        with torch.no_grad():
            rest = solve(step, self.warm_start)
            if self.training:
                self.warm_start.copy_(rest)
        if not torch.is_grad_enabled():
            return rest

        z = step(rest.detach())
        probe = rest.detach().clone().requires_grad_()
        image = step(probe)

        def adjoint(gradient):
            def pull(g):
                return torch.autograd.grad(image, probe, g, retain_graph=True)[0] + gradient
            return solve(pull, gradient)

        if z.requires_grad:
            z.register_hook(adjoint)
        return z


class Classifier(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.layer = EquilibriumLayer(FEATURES, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, adjacency, x):
        return self.head(self.norm(self.layer(adjacency, x)))


adjacency, x, label = make_graph()
order = torch.randperm(NODES)
train, test = order[:60], order[60:]
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)
for epoch in range(80):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(adjacency, x)[train], label[train])
    loss.backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    guess = model(adjacency, x).argmax(1)
print(f"loss {loss.item():.4f}  test accuracy {(guess[test] == label[test]).float().mean().item():.3f}")

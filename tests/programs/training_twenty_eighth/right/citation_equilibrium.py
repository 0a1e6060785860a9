"""An implicit graph network (Gu et al., 2020): node states are the fixed point of one layer, trained by the implicit
function theorem, on a synthetic citation graph."""
import torch
import torch.nn as nn
import torch.nn.functional as F

NODES, FIELDS, WORDS = 180, 4, 24


def make_graph(generator):
    field = torch.arange(NODES) % FIELDS
    same = field.unsqueeze(0) == field.unsqueeze(1)
    chance = torch.where(same, 0.06, 0.008)
    upper = torch.triu(torch.rand(NODES, NODES, generator=generator) < chance, diagonal=1).float()
    adjacency = upper + upper.T + torch.eye(NODES)
    scale = adjacency.sum(dim=1).rsqrt()
    topics = torch.randn(FIELDS, WORDS, generator=generator)
    words = 0.5 * topics[field] + 1.2 * torch.randn(NODES, WORDS, generator=generator)
    return scale.unsqueeze(1) * adjacency * scale, words, field


@torch.no_grad()
def solve(step, start, tolerance=1e-6, limit=200):
    z = start
    for _ in range(limit):
        new = step(z)
        if (new - z).norm() <= tolerance * (1 + new.norm()):
            return new
        z = new
    return z


class EquilibriumLayer(nn.Module):
    """z = relu(A z W + B(x)), with the spectral norm of W kept below one so that the map contracts."""

    def __init__(self, inputs, width, kappa=0.9):
        super().__init__()
        self.weight = nn.Parameter(0.2 * torch.randn(width, width))
        self.inject = nn.Linear(inputs, width)
        self.kappa = kappa
        self.project()

    @torch.no_grad()
    def project(self):
        spectral = torch.linalg.matrix_norm(self.weight, ord=2)
        if spectral > self.kappa:
            self.weight.mul_(self.kappa / spectral)

    def map(self, z, adjacency, source):
        return F.relu(adjacency @ z @ self.weight + source)

    def forward(self, adjacency, x):
        source = self.inject(x)
        with torch.no_grad():
            z = solve(lambda v: self.map(v, adjacency, source), torch.zeros_like(source))
        z = self.map(z, adjacency, source)
        if not torch.is_grad_enabled():
            return z
        z0 = z.detach().requires_grad_()
        f0 = self.map(z0, adjacency, source.detach())

        def implicit(grad):
            return solve(lambda g: torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad, grad)

        z.register_hook(implicit)
        return z


class ImplicitNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.layer = EquilibriumLayer(WORDS, width)
        self.out = nn.Linear(width, FIELDS)
        nn.init.zeros_(self.out.weight)

    def forward(self, adjacency, x):
        return self.out(self.layer(adjacency, x))


@torch.no_grad()
def accuracy(net, adjacency, x, field, nodes):
    net.eval()
    guess = net(adjacency, x).argmax(dim=1)
    net.train()
    return (guess[nodes] == field[nodes]).float().mean().item()


def main(epochs=40):
    torch.manual_seed(29)
    adjacency, words, field = make_graph(torch.Generator().manual_seed(10))
    order = torch.randperm(NODES)
    labelled, held_out = order[:60], order[60:]
    net = ImplicitNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=5e-4)
    for epoch in range(epochs):
        loss = F.cross_entropy(net(adjacency, words)[labelled], field[labelled])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        net.layer.project()
        if epoch % 10 == 0 or epoch == epochs - 1:
            print(f"epoch {epoch:2d}  loss {loss.item():.4f}  "
                  f"held-out accuracy {accuracy(net, adjacency, words, field, held_out):.3f}")
    return net


if __name__ == "__main__":
    net = main()

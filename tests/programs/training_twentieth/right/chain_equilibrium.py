"""Implicit graph network (Gu et al., 2020) in the manner of deep equilibrium models (Bai et al., 2019).

Each graph is a chain; only its first node carries the class, and every node has to name it.  The node states are a
fixed point, found without recording, and the gradient comes from the implicit function theorem.
"""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)
torch.set_num_threads(1)

NODES, CLASSES, FEATURES, WIDTH = 6, 3, 6, 24


def chains(n):
    label = torch.randint(0, CLASSES, (n,))
    x = 0.01 * torch.randn(n, NODES, FEATURES)
    x[:, 0, :CLASSES] += F.one_hot(label, CLASSES)
    return x, label.unsqueeze(1).expand(n, NODES)


def chain_adjacency():
    a = torch.eye(NODES)
    edge = torch.arange(NODES - 1)
    a[edge, edge + 1] = a[edge + 1, edge] = 1.0
    scale = a.sum(1).rsqrt()
    return scale.unsqueeze(1) * a * scale


def fixed_point(f, start, tolerance=5e-5, most=150):
    z = start
    for _ in range(most):
        following = f(z)
        change = (following - z).norm() / (following.norm() + 1e-8)
        z = following
        if change < tolerance:
            break
    return z


class ImplicitGraphLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Parameter(nn.init.orthogonal_(torch.empty(WIDTH, WIDTH)))
        self.outer = nn.Linear(FEATURES, WIDTH)
        self.register_buffer("adjacency", chain_adjacency())

    def contraction(self):
        norm = torch.linalg.matrix_norm(self.inner, ord=2)
        return self.inner * (0.9 / norm).clamp(max=1.0)

    def forward(self, x):
        weight, drive = self.contraction(), self.outer(x)

        def f(z):
            return torch.tanh(self.adjacency @ z @ weight + drive)

        with torch.no_grad():
            z = fixed_point(f, torch.zeros_like(drive))
        z = f(z)
        if not z.requires_grad:
            return z

        point = z.detach().requires_grad_()
        image = f(point)

        def solve(grad):
            return fixed_point(lambda g: torch.autograd.grad(image, point, g, retain_graph=True)[0] + grad, grad)

        z.register_hook(solve)
        return z


class ChainNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = ImplicitGraphLayer()
        self.readout = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.readout(F.normalize(self.layer(x), dim=-1) * 5)


@torch.no_grad()
def accuracy(model, x, label):
    right = (model(x).argmax(-1) == label).float()
    return right.mean().item(), right[:, -1].mean().item()


def main():
    model = ChainNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    test = chains(500)
    for step in range(1, 121):
        x, label = chains(32)
        loss = F.cross_entropy(model(x).transpose(1, 2), label)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 30 == 0:
            overall, far = accuracy(model, *test)
            print(f"step {step:4d}  loss {loss.item():.3f}  accuracy {overall:.3f}, at the far end {far:.3f}")
    return model


if __name__ == "__main__":
    model = main()

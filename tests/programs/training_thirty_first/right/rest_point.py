"""Classify two interleaved spirals with a layer that is defined by its rest point."""
import torch
import torch.nn.functional as F
from torch import nn


def spirals(count, generator):
    label = torch.randint(2, (count,), generator=generator)
    t = 0.3 + 1.2 * torch.rand(count, generator=generator)
    angle = 2.2 * torch.pi * t / 1.5 + torch.pi * label
    points = torch.stack([t * torch.cos(angle), t * torch.sin(angle)], dim=1)
    return points + 0.04 * torch.randn(count, 2, generator=generator), label


def iterate(step, start, tol=1e-6, limit=80):
    value = start
    for _ in range(limit):
        new = step(value)
        if (new - value).norm() <= tol * (1.0 + new.norm()):
            return new
        value = new
    return value


class Cell(nn.Module):
    def __init__(self, inputs, width, bound=0.8):
        super().__init__()
        self.inner = nn.Parameter(0.1 * torch.randn(width, width))
        self.outer = nn.Linear(inputs, width)
        self.bound = bound

    def forward(self, z, x):
        shrink = (self.bound / self.inner.norm()).clamp(max=1.0)
        return torch.tanh(z @ (shrink * self.inner).t() + self.outer(x))


class RestPoint(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.width = width
        self.cell = Cell(inputs, width)

    def forward(self, x):
        with torch.no_grad():
            rest = iterate(lambda z: self.cell(z, x), x.new_zeros(len(x), self.width))
        rest = self.cell(rest, x)
        if rest.requires_grad:
            anchor = rest.detach().requires_grad_()
            mapped = self.cell(anchor, x)

            def solve_adjoint(grad):
                def pull(g):
                    return torch.autograd.grad(mapped, anchor, g, retain_graph=True)[0] + grad

                return iterate(pull, grad)

            rest.register_hook(solve_adjoint)
        return rest


class SpiralNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.lift = nn.Sequential(nn.Linear(2, 24), nn.SiLU())
        self.rest = RestPoint(24, width)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.rest(self.lift(3.0 * x)))


def train(model, points, labels, steps=120, batch=64):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for step in range(steps):
        pick = torch.randint(len(points), (batch,))
        loss = F.cross_entropy(model(points[pick]), labels[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1:4d}  loss {loss.item():.4f}  inner norm {model.rest.cell.inner.norm().item():.3f}")


@torch.no_grad()
def accuracy(model, points, labels):
    return (model(points).argmax(dim=1) == labels).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(9)
    generator = torch.Generator().manual_seed(18)
    points, labels = spirals(800, generator)
    test_points, test_labels = spirals(300, generator)
    model = SpiralNet()
    train(model, points, labels)
    test_accuracy = accuracy(model, test_points, test_labels)
    print(f"test accuracy {test_accuracy:.3f}")

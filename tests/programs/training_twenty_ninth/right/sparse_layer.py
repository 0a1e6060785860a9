"""Classification of mixtures with an elastic-net coding layer that is differentiated implicitly.

The code of an input x minimises 0.5 |x - z D'|^2 + 0.5 mu |z|^2 + lam |z|_1.  It is found by a proximal gradient
iteration; the backward pass solves the linear equation of the fixed point.
"""
import torch
import torch.nn.functional as F
from torch import nn


class SparseCode(nn.Module):
    def __init__(self, inputs, atoms, ridge=0.6, tolerance=1e-6, limit=200):
        super().__init__()
        self.dictionary = nn.Parameter(torch.randn(inputs, atoms))
        self.raw_threshold = nn.Parameter(torch.tensor(-2.0))
        self.ridge, self.tolerance, self.limit = ridge, tolerance, limit

    def solve(self, update, start):
        value = start
        with torch.no_grad():
            for _ in range(self.limit):
                previous, value = value, update(value)
                if (value - previous).abs().max() <= self.tolerance * value.abs().max():
                    break
        return value

    def forward(self, x):
        atoms = F.normalize(self.dictionary, dim=0)
        threshold = F.softplus(self.raw_threshold)
        # the solution does not depend on the step length
        step = 1.0 / (torch.linalg.matrix_norm(atoms.detach(), 2) ** 2 + self.ridge)

        def update(z):
            slope = (z @ atoms.t() - x) @ atoms + self.ridge * z
            moved = z - step * slope
            return moved - moved.clamp(-step * threshold, step * threshold)

        code = self.solve(update, x.new_zeros(len(x), atoms.shape[1]))
        if not torch.is_grad_enabled():
            return code

        attached = update(code)
        point = code.detach().requires_grad_()
        image = update(point)

        def solve_adjoint(grad):
            def adjoint(g):
                return torch.autograd.grad(image, point, g, retain_graph=True)[0] + grad

            with torch.enable_grad():
                return self.solve(adjoint, grad)

        attached.register_hook(solve_adjoint)
        return attached


class Classifier(nn.Module):
    def __init__(self, inputs, atoms, classes):
        super().__init__()
        self.code = SparseCode(inputs, atoms)
        self.read_out = nn.Linear(atoms, classes)

    def forward(self, x):
        return self.read_out(self.code(x))


def mixtures(count, sources, generator):
    """The class of a mixture is its strongest source."""
    strength = torch.rand(count, len(sources), generator=generator).pow(3)
    noise = 0.05 * torch.randn(count, sources.shape[1], generator=generator)
    return strength @ sources + noise, strength.argmax(dim=1)


def accuracy(model, x, labels):
    with torch.no_grad():
        return (model(x).argmax(dim=1) == labels).float().mean().item()


def main():
    torch.manual_seed(14)
    generator = torch.Generator().manual_seed(3)
    sources = F.normalize(torch.randn(6, 10, generator=generator), dim=1)
    x, labels = mixtures(448, sources, generator)
    new_x, new_labels = mixtures(256, sources, generator)

    model = Classifier(inputs=10, atoms=12, classes=6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.06)
    losses = []
    for epoch in range(5):
        for rows in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}  loss {losses[-1]:.4f}  threshold {F.softplus(model.code.raw_threshold).item():.4f}")
    print(f"accuracy {accuracy(model, x, labels):.3f}, on new mixtures {accuracy(model, new_x, new_labels):.3f}")
    return model, losses


if __name__ == "__main__":
    model, losses = main()

"""Gradual magnitude pruning of a small glyph classifier down to a fixed share of its weights."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)

CLASSES, SIDE = 20, 12
templates = F.interpolate((torch.rand(CLASSES, 1, 6, 6) > 0.55).float(), size=(SIDE, SIDE), mode="nearest")


def make_glyphs(n):
    label = torch.randint(0, CLASSES, (n,))
    image = templates[label]
    dx, dy = (int(v) for v in torch.randint(-1, 2, (2,)))
    image = torch.roll(image, (dy, dx), (2, 3))
    return image + 0.9 * torch.randn_like(image), label


class GlyphNet(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.fc1 = nn.Linear(SIDE * SIDE, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, CLASSES)

    def forward(self, x):
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


class GradualPruner:
    """Raises the sparsity along a cubic ramp; what has been pruned stays pruned."""

    def __init__(self, layers, final, start, end):
        self.final, self.start, self.end = final, start, end
        self.masks = {}
        for layer in layers:
            self.masks[layer] = torch.ones_like(layer.weight)
            layer.weight.register_hook(lambda grad, layer=layer: grad * self.masks[layer])

    def target(self, step):
        t = min(max((step - self.start) / (self.end - self.start), 0.0), 1.0)
        return self.final * (1 - (1 - t) ** 3)

    @torch.no_grad()
    def update(self, step):
        if not self.start <= step <= self.end:
            return
        for layer, mask in self.masks.items():
            k = int(self.target(step) * mask.numel())
            if k:
                size = (layer.weight.abs() * mask).flatten()
                mask.fill_(1.0).view(-1)[size.argsort()[:k]] = 0.0
                layer.weight.mul_(mask)

    def density(self):
        return sum(m.sum() for m in self.masks.values()) / sum(m.numel() for m in self.masks.values())


@torch.no_grad()
def accuracy(model, batches=20):
    model.eval()
    hits = [(model(x).argmax(1) == y).float().mean() for x, y in (make_glyphs(200) for _ in range(batches))]
    model.train()
    return torch.stack(hits).mean().item()


model = GlyphNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
pruner = GradualPruner([model.fc1, model.fc2], final=0.95, start=150, end=500)
STEPS = 600

for step in range(1, STEPS + 1):
    x, y = make_glyphs(64)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        pruner.update(step)
    if step % 100 == 0:
        print(f"step {step}  loss {loss.item():.3f}  density {pruner.density().item():.1%}")

final_accuracy = accuracy(model)
print(f"accuracy {final_accuracy:.1%} with {pruner.density().item():.1%} of the weights")

"""Magnitude pruning of a small convolutional classifier in two stages, each followed by training of the remaining weights."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
SIZE = 14
CLASSES = 5


def make_shapes(n, noise=0.25):
    label = torch.randint(0, CLASSES, (n,))
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    cy = torch.randint(5, 9, (n, 1, 1))
    cx = torch.randint(5, 9, (n, 1, 1))
    dy, dx = (ys - cy).abs(), (xs - cx).abs()
    forms = torch.stack([
        (dy <= 3) & (dx <= 3),
        dy * dy + dx * dx <= 14,
        (dy <= 1) | (dx <= 1),
        dy + dx <= 4,
        (dy == dx) | (dy == dx + 1),
    ], dim=1).float()
    image = forms[torch.arange(n), label]
    return (image + noise * torch.randn(n, SIZE, SIZE))[:, None], label


class ShapeNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.hidden = nn.Linear(2 * width * 9, 48)
        self.out = nn.Linear(48, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.hidden(x.flatten(1)))
        return self.out(x)


class MagnitudePruner:
    """Keeps a binary mask per weight matrix; pruned weights are set to zero and get no gradient."""

    def __init__(self, model, milestones):
        self.milestones = milestones
        self.weights = {name: p for name, p in model.named_parameters() if p.dim() > 1}
        self.masks = {name: torch.ones_like(p) for name, p in self.weights.items()}
        for name, p in self.weights.items():
            p.register_hook(lambda grad, name=name: grad * self.masks[name])

    @torch.no_grad()
    def update(self, step):
        if step not in self.milestones:
            return
        scores = torch.cat([(p.abs() * self.masks[name]).flatten() for name, p in self.weights.items()])
        count = int(self.milestones[step] * scores.numel())
        threshold = scores.kthvalue(count).values
        for name, p in self.weights.items():
            self.masks[name] = ((p.abs() * self.masks[name]) > threshold).float()
            p.mul_(self.masks[name])

    def density(self):
        kept = sum(m.sum().item() for m in self.masks.values())
        return kept / sum(m.numel() for m in self.masks.values())


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    score = (model(images).argmax(1) == labels).float().mean().item()
    model.train()
    return score


def train(model, pruner, steps=220, batch=24):
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps, eta_min=1e-3)
    held_out = make_shapes(300)
    for step in range(steps):
        images, labels = make_shapes(batch)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        pruner.update(step)
        if step % 40 == 39:
            print(f"step {step + 1:3d}  loss {loss.item():.3f}  density {pruner.density():.3f}  "
                  f"accuracy {accuracy(model, *held_out):.3f}")
    return held_out


def main():
    model = ShapeNet()
    pruner = MagnitudePruner(model, milestones={100: 0.6, 150: 0.9})
    held_out = train(model, pruner)
    total = sum(p.numel() for p in model.parameters())
    print(f"parameters {total}, kept share of weights {pruner.density():.3f}, "
          f"final accuracy {accuracy(model, *held_out):.3f}")
    return model, pruner, held_out


if __name__ == "__main__":
    model, pruner, held_out = main()

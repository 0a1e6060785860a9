"""Pretrain a backbone on many leaf outlines and fine-tune it, with a new head, on a rare species group."""
import os
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

POINTS = 32


def outlines(count, generator, harmonics, classes):
    """Radii around the outline of a leaf; the class is the phase relation of two harmonics."""
    label = torch.randint(classes, (count,), generator=generator)
    angle = torch.linspace(0, 2 * torch.pi, POINTS + 1)[:-1]
    start = 2 * torch.pi * torch.rand(count, 1, generator=generator)
    relation = 2 * torch.pi * label[:, None] / classes
    low, high = harmonics
    radius = torch.sin(low * angle + start) + torch.sin(high * angle + high / low * start + relation)
    return radius + 0.2 * torch.randn(count, POINTS, generator=generator), label


class Backbone(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.first = nn.Linear(POINTS, width)
        self.second = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        h = F.gelu(self.first(x))
        return self.norm(h + F.gelu(self.second(h)))


class LeafNet(nn.Module):
    def __init__(self, classes, width=48):
        super().__init__()
        self.backbone = Backbone(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


class Trainer:
    def __init__(self, model, backbone_lr, head_lr):
        self.model = model
        self.optimizer = torch.optim.AdamW(
            [
                {"params": model.backbone.parameters(), "lr": backbone_lr},
                {"params": model.head.parameters(), "lr": head_lr},
            ],
            weight_decay=1e-4,
        )

    def load_backbone(self, path):
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.backbone.load_state_dict(state, strict=True, assign=True)

    def save_backbone(self, path):
        torch.save(self.model.backbone.state_dict(), path)

    def fit(self, x, y, steps, batch=64):
        self.model.train()
        recent = []
        for step in range(steps):
            pick = torch.randint(len(x), (batch,))
            loss = F.cross_entropy(self.model(x[pick]), y[pick])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            recent.append(loss.item())
            if step % 80 == 79:
                print(f"  step {step + 1:4d}  loss {sum(recent[-50:]) / 50:.4f}")
        return recent

    @torch.no_grad()
    def accuracy(self, x, y):
        self.model.eval()
        return (self.model(x).argmax(dim=1) == y).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(29)
    generator = torch.Generator().manual_seed(2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "backbone.pt")

        print("common species")
        x, y = outlines(2000, generator, harmonics=(1, 3), classes=4)
        pretrainer = Trainer(LeafNet(classes=4), backbone_lr=3e-3, head_lr=3e-3)
        pretrainer.fit(x, y, steps=160)
        pretrainer.save_backbone(path)
        pretrained = {k: v.clone() for k, v in pretrainer.model.backbone.state_dict().items()}

        print("rare species")
        rare_x, rare_y = outlines(1000, generator, harmonics=(1, 2), classes=3)
        test_x, test_y = outlines(500, generator, harmonics=(1, 2), classes=3)
        trainer = Trainer(LeafNet(classes=3), backbone_lr=2e-3, head_lr=1e-2)
        trainer.load_backbone(path)
        losses = trainer.fit(rare_x, rare_y, steps=240)

    test_accuracy = trainer.accuracy(test_x, test_y)
    print(f"accuracy on rare species {test_accuracy:.3f}")

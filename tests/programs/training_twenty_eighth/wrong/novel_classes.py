"""Adding classes to a trained classifier of glyphs: the encoder and the rows of the known classes stay as they are."""
import torch
import torch.nn as nn
import torch.nn.functional as F

KNOWN, NOVEL = 6, 3


class Glyphs:
    """Noisy, shifted copies of one random binary pattern per class."""

    def __init__(self, classes, generator, size=12):
        coarse = (torch.rand(classes, 1, size // 2, size // 2, generator=generator) > 0.55).float()
        self.patterns = F.interpolate(coarse, scale_factor=2, mode="nearest")
        self.generator = generator

    def sample(self, n, first, last):
        labels = torch.randint(first, last, (n,), generator=self.generator)
        images = self.patterns[labels].clone()
        for i in range(n):
            dy, dx = torch.randint(-1, 2, (2,), generator=self.generator).tolist()
            images[i] = images[i].roll((dy, dx), dims=(1, 2))
        return images + 0.7 * torch.randn(images.shape, generator=self.generator), labels


class Encoder(nn.Module):
    def __init__(self, width=24, out=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(width * 9, out),
        )

    def forward(self, x):
        return torch.tanh(self.body(x))


def keep_known_rows(parameter, known):
    keep = torch.ones(len(parameter))
    keep[:known] = 0.0
    keep = keep.view(-1, *[1] * (parameter.dim() - 1))
    parameter.register_hook(lambda grad: grad * keep)


def extend_head(head, novel):
    wider = nn.Linear(head.in_features, head.out_features + novel)
    with torch.no_grad():
        wider.weight[: head.out_features].copy_(head.weight)
        wider.bias[: head.out_features].copy_(head.bias)
    keep_known_rows(wider.weight, head.out_features)
    keep_known_rows(wider.bias, head.out_features)
    return wider


def train_base(encoder, head, images, labels, epochs=6, batch=32):
    optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=3e-3)
    for epoch in range(epochs):
        for pick in torch.randperm(len(images)).split(batch):
            loss = F.cross_entropy(head(encoder(images[pick])), labels[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"base epoch {epoch + 1}  loss {loss.item():.3f}")


def train_novel(encoder, head, images, labels, steps=400, batch=48):
    encoder.requires_grad_(False)
    with torch.no_grad():
        features = encoder(images)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2, weight_decay=0.2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.3, total_iters=steps)
    for step in range(steps):
        pick = torch.randint(0, len(features), (batch,))
        loss = F.cross_entropy(head(features[pick]), labels[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (step + 1) % 100 == 0:
            print(f"novel step {step + 1}  loss {loss.item():.3f}")


@torch.no_grad()
def accuracy(encoder, head, images, labels):
    return (head(encoder(images)).argmax(1) == labels).float().mean().item()


torch.manual_seed(4)
generator = torch.Generator().manual_seed(8)
glyphs = Glyphs(KNOWN + NOVEL, generator)
encoder, head = Encoder(), nn.Linear(32, KNOWN)
train_base(encoder, head, *glyphs.sample(480, 0, KNOWN))

known_test = glyphs.sample(300, 0, KNOWN)
novel_test = glyphs.sample(150, KNOWN, KNOWN + NOVEL)
print(f"known classes before: {accuracy(encoder, head, *known_test):.3f}")

known_few, known_labels = glyphs.sample(60, 0, KNOWN)
novel_few, novel_labels = glyphs.sample(120, KNOWN, KNOWN + NOVEL)
wide_head = extend_head(head, NOVEL)
train_novel(encoder, wide_head, torch.cat([known_few, novel_few]), torch.cat([known_labels, novel_labels]))
print(f"known classes after:  {accuracy(encoder, wide_head, *known_test):.3f}")
print(f"novel classes after:  {accuracy(encoder, wide_head, *novel_test):.3f}")

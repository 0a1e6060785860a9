"""SimCLR on synthetic glyphs, followed by a linear probe (reimplementation for the representation learning seminar).

A glyph is a random 12x12 stroke pattern of one of eight classes; an augmentation shifts it, scales its contrast and adds
pixel noise. Only the probe sees the labels.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE, CLASSES = 12, 8
TEMPERATURE = 0.2


def make_glyphs(n, gen):
    proto_gen = torch.Generator().manual_seed(99)
    prototypes = torch.rand(CLASSES, 1, 5, 5, generator=proto_gen)
    prototypes = (F.interpolate(prototypes, size=(SIDE, SIDE), mode="bilinear", align_corners=False) > 0.5).float()
    labels = torch.randint(0, CLASSES, (n,), generator=gen)
    warp = 0.35 * torch.randn(n, 1, 4, 4, generator=gen)
    warp = F.interpolate(warp, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
    return prototypes[labels] + warp, labels


def augment(x, gen):
    n = x.size(0)
    shift = torch.randint(-3, 4, (n, 2), generator=gen)
    rows = (torch.arange(SIDE).view(1, SIDE, 1) + shift[:, :1, None]) % SIDE
    cols = (torch.arange(SIDE).view(1, 1, SIDE) + shift[:, 1:, None]) % SIDE
    moved = x[torch.arange(n).view(n, 1, 1), 0, rows, cols].unsqueeze(1)
    gain = 0.4 + 1.2 * torch.rand(n, 1, 1, 1, generator=gen)
    return gain * moved + 0.5 * torch.randn(x.shape, generator=gen)


class Encoder(nn.Module):
    def __init__(self, width=16, feat=48, proj=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(2 * width * 9, feat), nn.ReLU(),
        )
        self.projector = nn.Sequential(nn.Linear(feat, feat), nn.ReLU(), nn.Linear(feat, proj))

    def forward(self, x):
        return self.projector(self.body(x))


def nt_xent(z, temperature):
    """Normalised temperature-scaled cross entropy for 2N embeddings, the two views of an image being N apart."""
    z = F.normalize(z, dim=1)
    logits = z @ z.t() / temperature
    logits.fill_diagonal_(float("-inf"))
    n = z.size(0) // 2
    partner = torch.arange(2 * n).roll(n)
    return F.cross_entropy(logits, partner)


def pretrain(images, gen, epochs=12, batch=64):
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(images), generator=gen).split(batch):
            x = images[idx]
            views = torch.stack([augment(x, gen), augment(x, gen)], dim=1)
            z = model(views.flatten(0, 1))
            loss = nt_xent(z, TEMPERATURE)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}  contrastive loss {total / len(images):.3f}")
    return model


def linear_probe(encoder, train, test, steps=150):
    encoder.eval()
    with torch.no_grad():
        f_train, f_test = encoder.body(train[0]), encoder.body(test[0])
    mean, std = f_train.mean(0), f_train.std(0) + 1e-4
    f_train, f_test = (f_train - mean) / std, (f_test - mean) / std
    probe = nn.Linear(f_train.size(1), CLASSES)
    optimizer = torch.optim.Adam(probe.parameters(), lr=0.02, weight_decay=1e-3)
    for _ in range(steps):
        loss = F.cross_entropy(probe(f_train), train[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return (probe(f_test).argmax(1) == test[1]).float().mean().item()


torch.manual_seed(31)
gen = torch.Generator().manual_seed(32)
images, _ = make_glyphs(640, gen)
few, test = make_glyphs(48, gen), make_glyphs(600, gen)
few, test = (augment(few[0], gen), few[1]), (augment(test[0], gen), test[1])
encoder = pretrain(images, gen)
probe_acc = linear_probe(encoder, few, test)
print(f"linear probe accuracy with {len(few[1])} labels: {probe_acc:.3f}")

"""Stacked denoising autoencoder, trained greedily layer by layer on glyph images; afterwards a
linear probe on the frozen code, and then fine-tuning of everything."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9)

CLASSES = 8
SIDE = 12
SIZES = [SIDE * SIDE, 64, 24]
BATCH = 50

glyphs = (torch.rand(CLASSES, 6, 6) < 0.45).float()


def make_set(n):
    """Glyphs at a random offset of 0..2 pixels, doubled in size, with noise."""
    labels = torch.randint(CLASSES, (n,))
    big = F.interpolate(glyphs[labels].unsqueeze(1), size=(10, 10)).squeeze(1)
    images = torch.zeros(n, SIDE, SIDE)
    for i, (r, c) in enumerate(torch.randint(0, 3, (n, 2)).tolist()):
        images[i, r:r + 10, c:c + 10] = big[i]
    images = (images + 0.5 * torch.randn_like(images)).clamp(0, 1)
    return images.flatten(1), labels


class Level(nn.Module):
    def __init__(self, inputs, code):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(inputs, code), nn.Sigmoid())
        self.decode = nn.Linear(code, inputs)

    def forward(self, x):
        noisy = x * (torch.rand_like(x) > 0.2)
        return torch.sigmoid(self.decode(self.encode(noisy)))


def pretrain(level, inputs, epochs=6):
    optimizer = torch.optim.Adam(level.parameters(), lr=4e-3)
    for _ in range(epochs):
        for idx in torch.randperm(len(inputs)).split(BATCH):
            optimizer.zero_grad()
            loss = F.binary_cross_entropy(level(inputs[idx]), inputs[idx])
            loss.backward()
            optimizer.step()
    return loss.item()


def train_classifier(encoder, head, optimizer, x, y, epochs):
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(25):
            optimizer.zero_grad()
            F.cross_entropy(head(encoder(x[idx])), y[idx]).backward()
            optimizer.step()


@torch.no_grad()
def accuracy(encoder, head, x, y):
    return (head(encoder(x)).argmax(1) == y).float().mean().item()


unlabelled, _ = make_set(3000)
few_x, few_y = make_set(250)
test_x, test_y = make_set(800)

# greedy pretraining: the next level gets the code of the finished one as its data
levels, codes = [], unlabelled
for i, (inputs, code) in enumerate(zip(SIZES[:-1], SIZES[1:])):
    level = Level(inputs, code)
    print(f"level {i + 1}: reconstruction loss {pretrain(level, codes):.4f}")
    level.requires_grad_(False)
    codes = level.encode(codes)
    levels.append(level)

encoder = nn.Sequential(*[level.encode for level in levels])
head = nn.Linear(SIZES[-1], CLASSES)

# linear probe: only the head has gradients
probe = torch.optim.Adam([p for p in [*encoder.parameters(), *head.parameters()] if p.requires_grad], lr=3e-2)
before = [p.clone() for p in encoder.parameters()]
train_classifier(encoder, head, probe, few_x, few_y, epochs=40)
moved = sum((p - q).abs().sum().item() for p, q in zip(encoder.parameters(), before))
print(f"linear probe: accuracy {accuracy(encoder, head, test_x, test_y):.3f}  encoder moved by {moved:.1f}")

# fine-tuning: unfreeze the encoder, smaller steps for it
encoder.requires_grad_(True)
tuning = torch.optim.Adam([{"params": encoder.parameters(), "lr": 2e-3}, {"params": head.parameters()}], lr=1e-2)
train_classifier(encoder, head, tuning, few_x, few_y, epochs=40)
print(f"fine-tuned: accuracy {accuracy(encoder, head, test_x, test_y):.3f}")

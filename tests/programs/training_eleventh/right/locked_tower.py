"""Locked-image tuning: a text tower learns to speak the language of an image net that was trained before and stays as it is."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)

SIDE, SHAPES, SHADES = 12, 6, 4
masks = (F.interpolate(torch.rand(SHAPES, 1, 4, 4), size=(SIDE, SIDE)) > 0.5).float()
VOCAB = SHAPES + SHADES + 3          # shape words, shade words, three filler words


def make_scenes(n):
    shape, shade = torch.randint(0, SHAPES, (n,)), torch.randint(0, SHADES, (n,))
    images = masks[shape] * (0.6 + 0.8 * shade)[:, None, None, None]
    images = images + 0.3 * torch.randn_like(images)
    filler = SHAPES + SHADES + torch.randint(0, 3, (n, 2))
    words = torch.stack([shape, SHAPES + shade, filler[:, 0], filler[:, 1]], 1)
    return images, words.gather(1, torch.rand(n, 4).argsort(1)), shape, shade


class ImageNet(nn.Module):
    def __init__(self, width=16, dim=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(width * 9, dim), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(dim, SHAPES + SHADES)

    def forward(self, x):
        return self.head(self.body(x))


class LockedPair(nn.Module):
    """The image side contributes features only: no gradients, no batch statistics, no dropout."""

    def __init__(self, image_net, dim=32):
        super().__init__()
        self.image = image_net.body
        self.image.requires_grad_(False)
        self.words = nn.Embedding(VOCAB, dim)
        self.text = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.log_scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("centre", torch.zeros(dim))

    def train(self, mode=True):
        super().train(mode)
        self.image.eval()
        return self

    @torch.no_grad()
    def embed_images(self, images):
        return F.normalize(self.image(images) - self.centre, dim=1)

    def forward(self, images, words):
        text = F.normalize(self.text(self.words(words).mean(1)), dim=1)
        return self.log_scale.exp() * self.embed_images(images) @ text.t()


first = ImageNet()
optimizer = torch.optim.AdamW(first.parameters(), lr=3e-3)
for it in range(120):
    images, _, shape, shade = make_scenes(64)
    out = first(images)
    loss = F.cross_entropy(out[:, :SHAPES], shape) + F.cross_entropy(out[:, SHAPES:], shade)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"first stage: loss {loss.item():.3f}")

model = LockedPair(first).train()
with torch.no_grad():
    model.centre.copy_(model.image(make_scenes(500)[0]).mean(0))
before = [t.clone() for t in model.image.state_dict().values()]
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3, weight_decay=0.01)
for it in range(250):
    images, words, shape, shade = make_scenes(64)
    key = shape * SHADES + shade
    target = (key[:, None] == key[None]).float()
    target = target / target.sum(1, keepdim=True)
    logits = model(images, words)
    loss = 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 50 == 0 or it == 249:
        print(f"iteration {it:3d}  loss {loss.item():.3f}  scale {model.log_scale.exp().item():.1f}")
assert all(torch.equal(a, b) for a, b in zip(before, model.image.state_dict().values()))

model.eval()
images, words, shape, shade = make_scenes(500)
prompts = torch.cartesian_prod(torch.arange(SHAPES), SHAPES + torch.arange(SHADES), torch.tensor([VOCAB - 3]), torch.tensor([VOCAB - 1]))
with torch.no_grad():
    guess = model(images, prompts).argmax(1)
print(f"zero-shot accuracy over {len(prompts)} prompts {(guess == shape * SHADES + shade).float().mean().item():.1%}")

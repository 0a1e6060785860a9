"""Low-rank adapters on a small vision transformer that was pretrained on stripes, tuned for a new set of textures."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, PATCH, DIM = 16, 4, 32


def textures(n, angles, generator, frequency):
    labels = torch.randint(0, len(angles), (n,), generator=generator)
    angle = torch.tensor(angles)[labels][:, None, None]
    axis = torch.arange(SIZE, dtype=torch.float32)
    phase = 6.28 * torch.rand(n, 1, 1, generator=generator)
    wave = torch.cos(frequency * (axis[None, :, None] * torch.sin(angle) + axis[None, None, :] * torch.cos(angle)) + phase)
    return (wave + 0.5 * torch.randn(n, SIZE, SIZE, generator=generator))[:, None], labels


class Block(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 2 * dim)
        self.fc2 = nn.Linear(2 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class TileTransformer(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.embed = nn.Conv2d(1, DIM, PATCH, stride=PATCH)
        self.position = nn.Parameter(0.02 * torch.randn(1, (SIZE // PATCH) ** 2, DIM))
        self.blocks = nn.Sequential(Block(DIM), Block(DIM))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, classes)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


class LowRankLinear(nn.Module):
    """A frozen linear layer with a trainable update, folded into the weight for evaluation."""

    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.weight, self.bias = base.weight, base.bias
        self.scale = alpha / rank
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def train(self, mode=True):
        super().train(mode)
        with torch.no_grad():
            update = self.scale * self.up @ self.down
            if mode:
                self.weight.sub_(update)
            else:
                self.weight.add_(update)
        return self

    def forward(self, x):
        out = F.linear(x, self.weight, self.bias)
        if self.training:
            out = out + self.scale * F.linear(F.linear(x, self.down), self.up)
        return out


def add_adapters(model, classes):
    model.requires_grad_(False)
    for block in model.blocks:
        for name in ("qkv", "fc1"):
            setattr(block, name, LowRankLinear(getattr(block, name)))
    model.head = nn.Linear(DIM, classes)
    return model


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    return (model(images).argmax(1) == labels).float().mean().item()


def fit(model, train_set, test_set, epochs, lr, batch=32):
    images, labels = train_set
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    for epoch in range(epochs):
        model.train()
        for pick in torch.randperm(len(images)).split(batch):
            loss = F.cross_entropy(model(images[pick]), labels[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        fitted, held_out = accuracy(model, *train_set), accuracy(model, *test_set)
        print(f"epoch {epoch + 1}  loss {loss.item():.3f}  train {fitted:.3f}  test {held_out:.3f}")


torch.manual_seed(0)
generator = torch.Generator().manual_seed(5)
coarse, fine = [0.0, 0.8, 1.6, 2.4], [0.2, 0.7, 1.2, 1.7, 2.2, 2.7]
pretrained = TileTransformer(len(coarse))
print("pretraining")
fit(pretrained, textures(384, coarse, generator, 0.9), textures(128, coarse, generator, 0.9), epochs=3, lr=3e-3)
model = add_adapters(copy.deepcopy(pretrained), len(fine))
tuned = sum(p.numel() for p in model.parameters() if p.requires_grad)
print(f"adapters: {tuned} parameters of {sum(p.numel() for p in model.parameters())} are trained")
fit(model, textures(384, fine, generator, 1.3), textures(128, fine, generator, 1.3), epochs=6, lr=3e-3)

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


class MixerBlock(nn.Module):
    def __init__(self, patches, dim, drop):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tokens = nn.Sequential(nn.Linear(patches, 2 * patches), nn.GELU(), nn.Dropout(drop), nn.Linear(2 * patches, patches, bias=False))
        self.channels = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(drop), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, size=12, patch=3, dim=24, depth=3, classes=2, drop=0.1):
        super().__init__()
        self.stem = nn.Conv2d(1, dim, patch, stride=patch)
        self.blocks = nn.ModuleList([MixerBlock((size // patch) ** 2, dim, drop) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            if torch.is_grad_enabled():
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(self.norm(x).mean(1))


def symmetric_images(count):
    images = torch.randn(count, 1, 12, 12)
    labels = torch.arange(count) % 2
    mirrored = 0.5 * (images + images.flip(3)) * 2**0.5
    return torch.where(labels.view(-1, 1, 1, 1) == 1, mirrored + 0.3, images), labels


def main():
    torch.manual_seed(0)
    train = DataLoader(TensorDataset(*symmetric_images(192)), batch_size=32, shuffle=True)
    test_x, test_y = symmetric_images(96)
    model = Mixer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(4):
        model.train()
        for x, y in train:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} acc {accuracy:.3f}")


if __name__ == "__main__":
    main()

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Cells(Dataset):
    def __init__(self, count, size=16, seed=0):
        g = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        masks = torch.zeros(count, 1, size, size)
        for n in range(count):
            for _ in range(2):
                cy, cx = torch.randint(3, size - 3, (2,), generator=g).tolist()
                radius = int(torch.randint(2, 4, (1,), generator=g))
                masks[n, 0][(yy - cy) ** 2 + (xx - cx) ** 2 <= radius**2] = 1
        self.masks = masks
        self.images = masks + 0.5 * torch.randn(masks.shape, generator=g)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, n):
        return self.images[n], self.masks[n]


def conv(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(2, cout), nn.SiLU())


class TinyUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = conv(1, width)
        self.bottom = conv(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge = conv(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        deep = self.bottom(F.max_pool2d(skip, 2))
        return self.out(self.merge(torch.cat([skip, self.up(deep)], 1)))


def dice_bce(logits, mask):
    prob = logits.sigmoid()
    overlap = 2 * (prob * mask).sum((1, 2, 3)) + 1
    dice = 1 - overlap / (prob.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
    return dice.mean() + F.binary_cross_entropy_with_logits(logits, mask)


def main(epochs=4, micro_batch=4, accumulate=4):
    torch.manual_seed(0)
    loader = DataLoader(Cells(64), batch_size=micro_batch, shuffle=True)
    model = TinyUNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        total = 0.0
        for i, (image, mask) in enumerate(loader):
            optimizer.zero_grad()
            loss = dice_bce(model(image), mask) / accumulate
            loss.backward()
            total += loss.item() * accumulate
            if (i + 1) % accumulate == 0:
                optimizer.step()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")
    return model


if __name__ == "__main__":
    model = main()

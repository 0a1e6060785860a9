import torch
import torch.nn.functional as F
from torch import nn


def limit(params, ceiling):
    grads = [p.grad for p in params if p.grad is not None]
    norm = torch.stack([g.norm() for g in grads]).norm()
    factor = (ceiling / (norm + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(factor)
    return norm


class Segmenter(nn.Module):
    def __init__(self, channels=12):
        super().__init__()
        self.down = nn.Conv2d(3, channels, 3, padding=1)
        self.mid = nn.Conv2d(channels, channels, 3, padding=2, dilation=2)
        self.up = nn.Conv2d(channels, 1, 1)

    def forward(self, tiles):
        return self.up(F.relu(self.mid(F.relu(self.down(tiles)))))


class Accumulator:
    def __init__(self, net, every, ceiling):
        self.net, self.every, self.ceiling = net, every, ceiling
        self.opt = torch.optim.SGD(net.parameters(), lr=0.25, momentum=0.9)
        self.seen = 0

    def feed(self, tiles, mask):
        loss = F.binary_cross_entropy_with_logits(self.net(tiles), mask)
        (loss / self.every).backward()
        self.seen += 1
        if self.seen % self.every == 0:
            norm = limit(list(self.net.parameters()), self.ceiling)
            self.opt.step()
            self.opt.zero_grad()
        return loss.item()


def tiles(n, gen):
    coarse = torch.randn(n, 1, 4, 4, generator=gen)
    smooth = F.interpolate(coarse, size=16, mode="bilinear", align_corners=False)
    mask = (smooth > 0.2).float()
    brightness = 0.8 * mask + 0.15 * smooth
    image = brightness.expand(-1, 3, -1, -1) * torch.tensor([1.0, 0.9, 0.7])[:, None, None]
    return image + 0.4 * torch.randn(n, 3, 16, 16, generator=gen), mask


def main():
    torch.manual_seed(111)
    gen = torch.Generator().manual_seed(3)
    runner = Accumulator(Segmenter(), every=4, ceiling=0.03)
    history = []
    for micro in range(240):
        history.append(runner.feed(*tiles(2, gen)))
        if micro % 40 == 39:
            print(f"update {(micro + 1) // 4:2d}  bce {sum(history[-40:]) / 40:.5f}")
    image, mask = tiles(64, gen)
    with torch.no_grad():
        hit = ((runner.net(image) > 0).float() == mask).float().mean()
    print(f"pixel accuracy {hit:.4f}")


if __name__ == "__main__":
    main()

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(83)


class Pyramid(nn.Module):
    def __init__(self, width=8, levels=3):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.stages = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(levels))
        self.views = nn.ModuleList(nn.Conv2d(width, 1, 1) for _ in range(levels))

    def forward(self, image):
        h = F.silu(self.stem(image))
        for stage, view in zip(self.stages, self.views):
            h = h + F.silu(stage(h))
            yield view(h)
            h = F.avg_pool2d(h, 2)


def blobs(n, size=16):
    grid = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).float()
    centre = torch.rand(n, 2, 1, 1) * size
    radius = 2 + 3 * torch.rand(n, 1, 1)
    mask = ((grid - centre).square().sum(1) < radius.square()).float().unsqueeze(1)
    return mask + 0.7 * torch.randn_like(mask), mask


class Session:
    shares = (1.0, 0.6, 0.3)

    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def teach(self, image, mask):
        self.optimizer.zero_grad()
        running = torch.zeros(())
        for level, (share, view) in enumerate(zip(self.shares, self.net(image))):
            truth = F.avg_pool2d(mask, 2**level)
            running = running + share * F.binary_cross_entropy_with_logits(view, truth)
            running.backward(retain_graph=True)
        self.optimizer.step()
        return running.item()


def overlap(net, image, mask):
    with torch.no_grad():
        found = (next(iter(net(image))) > 0).float()
    return (2 * (found * mask).sum() / (found + mask).sum()).item()


session = Session(Pyramid())
for k in range(60):
    loss = session.teach(*blobs(12))
    if k % 15 == 14:
        print(f"step {k + 1:2d}  loss {loss:.4f}")
print(f"overlap {overlap(session.net, *blobs(60)):.4f}")

"""Object coordinates read out from per-axis bins."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BINS = 16


class CoordinateNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3 * BINS, 1))

    def forward(self, image):
        maps = self.body(image)
        return maps.unflatten(1, (3, BINS))


def read_coordinates(maps):
    places = torch.arange(BINS).view(1, 1, -1, 1, 1)
    index = (torch.softmax(maps, dim=2) * places).sum(dim=2)
    coords = 2.0 * index / (BINS - 1) - 1.0
    return coords


def pose_loss(coords, target, mask):
    error = F.smooth_l1_loss(coords, target, reduction="none").sum(1)
    return (error * mask).sum() / mask.sum()


def main():
    torch.manual_seed(29)
    net = CoordinateNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    image = torch.rand(2, 3, 6, 6)
    target, mask = torch.rand(2, 3, 6, 6) * 2 - 1, (torch.rand(2, 6, 6) > 0.3).float()
    for _ in range(2):
        loss = pose_loss(read_coordinates(net(image)), target, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


if __name__ == "__main__":
    main()

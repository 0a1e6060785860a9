"""Detector whose output biases start from a prior on object density."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Head(nn.Module):
    def __init__(self, channels=8, n_anchor=3, n_classes=4):
        super().__init__()
        self.n_anchor, self.n_classes = n_anchor, n_classes
        self.strides = (8, 16)
        self.convs = nn.ModuleList(nn.Conv2d(channels, n_anchor * (5 + n_classes), 1) for _ in self.strides)

    def start_from_prior(self, objects=8, size=320):
        for conv, stride in zip(self.convs, self.strides):
            bias = conv.bias.detach().view(self.n_anchor, -1)
            bias[:, 4] += math.log(objects / (size / stride) ** 2)
            bias[:, 5:] += math.log(0.6 / (self.n_classes - 0.99))
            conv.bias = nn.Parameter(bias.view(-1), requires_grad=True)

    def forward(self, maps):
        return [conv(m) for conv, m in zip(self.convs, maps)]


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.down = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.head = Head()
        self.head.start_from_prior()

    def forward(self, x):
        fine = F.silu(self.stem(x))
        return self.head([fine, F.silu(self.down(fine))])


def main():
    torch.manual_seed(36)
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    outputs = model(torch.rand(1, 3, 16, 16))
    loss = sum(out.sigmoid().mean() for out in outputs)
    loss.backward()
    optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()

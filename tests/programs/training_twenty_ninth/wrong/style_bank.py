"""One network for several painting styles, with conditional instance normalization: each style has its own row of
scales and shifts, all else is shared. After the joint training on three styles a fourth one is added, for which only
its own rows are trained, so that the network goes on serving the first three.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)

SIZE, STYLES = 16, 4
STYLE_GAIN = 4.0


def contents(count):
    """Photographs: a bright disc on a shaded ground."""
    axis = torch.linspace(-1, 1, SIZE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    cx, cy = (torch.rand(2, count, 1, 1) - 0.5).unbind(0)
    disc = torch.sigmoid(12 * (0.45 - ((x - cx) ** 2 + (y - cy) ** 2).sqrt()))
    shade = 0.3 + 0.2 * torch.rand(count, 1, 1) * x
    return (shade + 0.5 * disc).unsqueeze(1).repeat(1, 3, 1, 1)


def paintings():
    """One texture per style: stripes in a direction and a tint of its own."""
    axis = torch.linspace(-1, 1, SIZE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    tint = torch.tensor([[0.9, 0.3, 0.2], [0.2, 0.8, 0.4], [0.3, 0.3, 0.9], [0.9, 0.8, 0.1]])
    stripes = [torch.sin(9 * (x * math.cos(a) + y * math.sin(a))) for a in (0.0, 0.8, 1.6, 2.4)]
    return tint.view(STYLES, 3, 1, 1) * (0.6 + 0.4 * torch.stack(stripes).unsqueeze(1))


class ConditionalNorm(nn.Module):
    def __init__(self, width, styles):
        super().__init__()
        self.norm = nn.InstanceNorm2d(width, affine=False)
        self.scale = nn.Parameter(torch.ones(styles, width))
        self.shift = nn.Parameter(torch.zeros(styles, width))

    def forward(self, x, style):
        return self.norm(x) * self.scale[style, :, None, None] + self.shift[style, :, None, None]


class StyleNet(nn.Module):
    def __init__(self, styles, width=16):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, width, 5, padding=2), nn.Conv2d(width, width, 3, padding=1),
                                    nn.Conv2d(width, width, 3, padding=1)])
        self.norms = nn.ModuleList(ConditionalNorm(width, styles) for _ in self.convs)
        self.out = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, style):
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(x), style))
        return torch.sigmoid(self.out(x))


class StyleLoss(nn.Module):
    def __init__(self, references):
        super().__init__()
        self.first = nn.Conv2d(3, 12, 3, padding=1)
        self.second = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.requires_grad_(False)
        self.references = [self.gram(f) for f in self.features(references)]

    def features(self, x):
        first = F.relu(self.first(4 * (x - 0.45)))
        return first, F.relu(self.second(first))

    def gram(self, f):
        flat = f.flatten(2)
        return flat @ flat.transpose(1, 2) / flat.shape[2]

    def forward(self, image, content, style):
        found, wanted = self.features(image), self.features(content)
        style_term = sum(F.mse_loss(self.gram(f), ref[style]) for f, ref in zip(found, self.references))
        return STYLE_GAIN * style_term, F.mse_loss(found[1], wanted[1])


def fit(net, criterion, optimizer, styles, steps):
    for step in range(steps):
        content = contents(6)
        style = styles[torch.randint(len(styles), (6,))]
        style_term, content_term = criterion(net(content, style), content, style)
        optimizer.zero_grad()
        (style_term + content_term).backward()
        optimizer.step()
        if (step + 1) % (steps // 2) == 0:
            print(f"  step {step + 1}: style {style_term.item():.4f} content {content_term.item():.4f}")


def only_row(row, shape):
    mask = torch.zeros(shape)
    mask[row] = 1
    return lambda grad: grad * mask


def add_style(net, criterion, row, steps):
    """Train the rows of one style; the shared weights are frozen and the other rows get no gradient."""
    net.requires_grad_(False)
    rows = []
    for norm in net.norms:
        for table in (norm.scale, norm.shift):
            table.data[row] = table.data[:row].mean(dim=0)
            table.requires_grad_(True)
            table.register_hook(only_row(row, table.shape))
            rows.append(table)
    optimizer = torch.optim.Adam(rows, lr=2e-2, weight_decay=1e-4)
    fit(net, criterion, optimizer, torch.tensor([row]), steps)


def main():
    net, criterion = StyleNet(STYLES), StyleLoss(paintings())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    print("joint training")
    fit(net, criterion, optimizer, torch.arange(STYLES - 1), 60)
    print("new style")
    add_style(net, criterion, STYLES - 1, 40)
    return net, criterion


if __name__ == "__main__":
    net, criterion = main()

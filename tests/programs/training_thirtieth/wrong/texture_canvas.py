"""Style transfer on small synthetic pictures: a canvas is optimized to have the content of one and the texture of another."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
SIZE = 24
STYLE_TAPS = ("conv1", "conv2")
CONTENT_TAP = "conv3"


def stripes(n, kind):
    """Oriented sinusoidal textures; `kind` selects the orientation and the frequency."""
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    angle = kind[:, None, None] * math.pi / 6
    freq = 0.5 + 0.15 * kind[:, None, None]
    phase = torch.rand(n, 1, 1) * 2 * math.pi
    wave = torch.sin(freq * (xs * torch.cos(angle) + ys * torch.sin(angle)) + phase)
    tint = torch.rand(n, 3, 1, 1)
    return (0.5 + 0.4 * wave[:, None] * tint + 0.05 * torch.randn(n, 3, SIZE, SIZE)).clamp(0, 1)


def disc_picture():
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    inside = ((ys - 12) ** 2 + (xs - 11) ** 2 < 49).float()
    colors = torch.tensor([0.8, 0.3, 0.2])[:, None, None]
    return (colors * inside + 0.15 * (1 - inside))[None]


class FeatureNet(nn.Module):
    """A small VGG: named convolutions, each followed by a rectifier."""

    def __init__(self, classes=6):
        super().__init__()
        self.blocks = nn.ModuleDict({
            "conv1": nn.Conv2d(3, 16, 3, padding=1), "relu1": nn.ReLU(inplace=True), "pool1": nn.AvgPool2d(2),
            "conv2": nn.Conv2d(16, 24, 3, padding=1), "relu2": nn.ReLU(inplace=True), "pool2": nn.AvgPool2d(2),
            "conv3": nn.Conv2d(24, 32, 3, padding=1), "relu3": nn.ReLU(inplace=True),
        })
        self.classify = nn.Linear(32, classes)

    def features(self, x, taps=()):
        """Returns the last map and the responses of the convolutions in `taps`, before the activation."""
        kept = {}
        x = (x - 0.45) / 0.25
        for name, layer in self.blocks.items():
            x = layer(x)
            if name in taps:
                kept[name] = x
        return x, kept

    def forward(self, x):
        return self.classify(self.features(x)[0].mean(dim=(2, 3)))


def gram(maps):
    n, c, h, w = maps.shape
    flat = maps.reshape(n, c, h * w)
    return flat @ flat.transpose(1, 2) / (h * w)


def train_features(net, steps=40):
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(steps):
        kind = torch.randint(0, 6, (32,))
        loss = F.cross_entropy(net(stripes(32, kind)), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def transfer(net, content, style, steps=100, style_weight=1.0):
    taps = STYLE_TAPS + (CONTENT_TAP,)
    with torch.no_grad():
        content_target = net.features(content, taps)[1][CONTENT_TAP]
        style_maps = net.features(style, taps)[1]
        style_targets = {name: gram(style_maps[name]) for name in STYLE_TAPS}

    canvas = torch.rand_like(content).requires_grad_()
    optimizer = torch.optim.Adam([canvas], lr=0.03)
    for step in range(steps):
        maps = net.features(canvas, taps)[1]
        content_loss = F.mse_loss(maps[CONTENT_TAP], content_target)
        style_loss = sum(F.mse_loss(gram(maps[name]), style_targets[name]) for name in STYLE_TAPS)
        loss = content_loss + style_weight * style_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            canvas.clamp_(0, 1)
        if step % 20 == 0 or step == steps - 1:
            print(f"step {step:3d}  content {content_loss.item():.4f}  style {style_loss.item():.4f}")
    return canvas.detach()


def main():
    net = FeatureNet()
    print(f"texture classifier loss {train_features(net):.3f}")
    net.requires_grad_(False)
    content = disc_picture()
    style = stripes(1, torch.tensor([2]))
    result = transfer(net, content, style)
    print("canvas mean per channel", [round(v, 3) for v in result.mean(dim=(0, 2, 3)).tolist()])
    return net, content, style, result


if __name__ == "__main__":
    net, content, style, result = main()

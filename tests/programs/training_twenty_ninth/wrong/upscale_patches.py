"""Super-resolution by a factor of two on synthetic grain patches.

The generator is trained with a pixel loss and a perceptual loss. The perceptual loss follows ESRGAN: it compares
the features of a fixed classifier before their activations, with weights per layer.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

SIZE = 24
LAYER_WEIGHTS = {"conv1_2": 0.4, "conv2_2": 1.0}
VGG_PLAN = [("1_1", 12), ("1_2", 12), "pool", ("2_1", 24), ("2_2", 24)]


def grain_patches(count):
    """Patches with an oriented wave, a blob and some grain; the label is the orientation (one of four)."""
    axis = torch.linspace(-1, 1, SIZE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    label = torch.randint(0, 4, (count,))
    angle = (label * math.pi / 4).view(-1, 1, 1)
    freq = 8 + 6 * torch.rand(count, 1, 1)
    phase = 2 * math.pi * torch.rand(count, 1, 1)
    wave = torch.sin(freq * (x * angle.cos() + y * angle.sin()) + phase)
    cx, cy = (torch.rand(2, count, 1, 1) - 0.5).unbind(0)
    blob = ((x - cx) ** 2 + (y - cy) ** 2 < 0.12).float()
    patch = 0.5 + 0.25 * wave + 0.2 * (blob - 0.5) + 0.03 * torch.randn(count, SIZE, SIZE)
    return patch.unsqueeze(1).clamp(0, 1), label


class Vgg(nn.Module):
    def __init__(self, plan, classes):
        super().__init__()
        self.features = nn.Sequential()
        width = 1
        for item in plan:
            if item == "pool":
                self.features.append(nn.MaxPool2d(2))
                continue
            name, out = item
            conv = nn.Conv2d(width, out, 3, padding=1)
            nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
            self.features.add_module("conv" + name, conv)
            self.features.add_module("relu" + name, nn.ReLU(inplace=True))
            width = out
        self.classifier = nn.Linear(width, classes)

    def forward(self, x):
        return self.classifier(self.features(x).mean(dim=(2, 3)))


class PerceptualLoss(nn.Module):
    def __init__(self, vgg, weights):
        super().__init__()
        self.vgg = vgg.eval().requires_grad_(False)
        self.weights = weights
        self.taps = {}
        for name in weights:
            self.vgg.features.get_submodule(name).register_forward_hook(self.tap(name))

    def tap(self, name):
        def hook(module, inputs, output):
            self.taps[name] = output
        return hook

    def extract(self, image):
        self.taps.clear()
        self.vgg.features(image - 0.5)
        return dict(self.taps)

    def forward(self, fake, real):
        with torch.no_grad():
            target = self.extract(real)
        found = self.extract(fake)
        return sum(w * F.l1_loss(found[name], target[name]) for name, w in self.weights.items())


class Generator(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.head = nn.Conv2d(1, width, 3, padding=1)
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.PReLU(),
                                  nn.Conv2d(width, width, 3, padding=1))
        self.tail = nn.Sequential(nn.Conv2d(width, 4, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, low):
        base = F.interpolate(low, scale_factor=2, mode="bilinear", align_corners=False)
        x = F.relu(self.head(low))
        return base + self.tail(x + self.body(x))


def pretrain(vgg, steps=30):
    optimizer = torch.optim.Adam(vgg.parameters(), lr=5e-3)
    for _ in range(steps):
        patch, label = grain_patches(16)
        loss = F.cross_entropy(vgg(patch - 0.5), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"classifier: loss {loss.item():.3f}")


vgg = Vgg(VGG_PLAN, 4)
pretrain(vgg)
perceptual = PerceptualLoss(vgg, LAYER_WEIGHTS)
generator = Generator()
optimizer = torch.optim.Adam(generator.parameters(), lr=4e-3)
held_out, _ = grain_patches(8)

for step in range(45):
    high, _ = grain_patches(8)
    low = F.avg_pool2d(high, 2)
    fake = generator(low)
    pixel = F.l1_loss(fake, high)
    percept = perceptual(fake, high)
    loss = 0.1 * pixel + percept
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 15 == 14:
        with torch.no_grad():
            error = F.mse_loss(generator(F.avg_pool2d(held_out, 2)).clamp(0, 1), held_out)
            print(f"step {step + 1}: pixel {pixel.item():.4f} percept {percept.item():.4f} "
                  f"psnr {-10 * torch.log10(error).item():.2f}")

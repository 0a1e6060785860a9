"""Learned image rescaling: a network shrinks an image to half its size, stores it with few levels per pixel, and a
second network restores the full size. Both are trained together through the quantization (straight-through).
"""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(17)

SIZE, LEVELS, STEPS = 24, 31, 75


def photos(count):
    axis = torch.linspace(-1, 1, SIZE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    angle = math.pi * torch.rand(count, 1, 1)
    wave = torch.sin((8 + 10 * torch.rand(count, 1, 1)) * (x * angle.cos() + y * angle.sin()))
    edge = (x * angle.sin() + y > torch.rand(count, 1, 1) - 0.5).float()
    return (0.5 + 0.15 * wave + 0.3 * (edge - 0.5)).unsqueeze(1)


def quantize(low):
    """The stored image; backwards it counts as the identity."""
    stored = (low.detach().clamp(0, 1) * LEVELS).round_().div_(LEVELS)
    return low + (stored - low).detach()


class Shrink(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(4, width, 3, padding=1), nn.LeakyReLU(0.2, inplace=True),
                                  nn.Conv2d(width, 1, 3, padding=1))
        nn.init.zeros_(self.body[-1].weight)
        nn.init.zeros_(self.body[-1].bias)

    def forward(self, image):
        return F.avg_pool2d(image, 2) + self.body(image)


class Enlarge(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.head = nn.Conv2d(1, width, 3, padding=1)
        self.mid = nn.Conv2d(width, width, 3, padding=1)
        self.tail = nn.Conv2d(width, 4, 3, padding=1)
        with torch.no_grad():  # the four sub-pixels of the shuffle start equal
            self.tail.weight.copy_(self.tail.weight[:1].expand_as(self.tail.weight)).mul_(0.1)
            self.tail.bias.zero_()

    def forward(self, low):
        x = F.leaky_relu(self.head(low - 0.5), 0.2)
        x = x + F.leaky_relu_(self.mid(x), 0.2)
        base = F.interpolate(low, scale_factor=2, mode="bilinear", align_corners=False)
        return base + F.pixel_shuffle(self.tail(x), 2)


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.shrink = Shrink()
        self.enlarge = Enlarge()

    def forward(self, image):
        low = self.shrink(image)
        return low, self.enlarge(quantize(low))


@torch.inference_mode()
def psnr(model, images):
    error = F.mse_loss(model(images)[1].clamp(0, 1), images)
    return -10 * math.log10(error.item())


codec = Codec()
average = AveragedModel(codec, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.Adam(codec.parameters(), lr=6e-3)
held_out = photos(16)
best, best_state = psnr(average, held_out), copy.deepcopy(average.module.state_dict())
print(f"start: psnr {best:.2f}")

for step in range(STEPS):
    images = photos(8)
    low, restored = codec(images)
    with torch.no_grad():
        guide = F.avg_pool2d(images, 2)
    fidelity = F.l1_loss(restored, images)
    resemblance = F.mse_loss(low, guide)
    outside = (low - low.detach().clamp(0, 1)).abs().mean()
    optimizer.zero_grad()
    (fidelity + 0.1 * resemblance + 0.1 * outside).backward()
    optimizer.step()
    average.update_parameters(codec)
    if step % 15 == 14:
        score = psnr(average, held_out)
        if score > best:
            best, best_state = score, copy.deepcopy(average.module.state_dict())
        print(f"step {step + 1}: fidelity {fidelity.item():.4f} resemblance {resemblance.item():.4f} psnr {score:.2f}")

final = Codec()
final.load_state_dict(best_state)
print(f"kept: psnr {psnr(final, held_out):.2f}")

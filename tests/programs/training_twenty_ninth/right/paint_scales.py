"""Neural style transfer on an image that is optimized from coarse to fine. At each scale the canvas is enlarged and
the state of Adam is enlarged with it; the picture that is kept is a running average of the canvas.
"""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

torch.manual_seed(33)

SCALES = (16, 22, 30)
CONTENT_WEIGHT = 1.5


class NormalizedGradient(torch.autograd.Function):
    """The identity, with a gradient whose L1 norm is the given strength."""

    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad / (grad.abs().sum() + 1e-8) * ctx.strength, None


class RunningAverage:
    """A debiased exponential average of the canvas."""

    def __init__(self, canvas, decay=0.9):
        self.decay = decay
        self.value = torch.zeros_like(canvas)
        self.weight = 0.0

    @torch.no_grad()
    def update(self, canvas):
        self.value.mul_(self.decay).add_(canvas, alpha=1 - self.decay)
        self.weight = self.decay * self.weight + 1 - self.decay

    def get(self):
        return self.value / self.weight


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 24, 3, padding=1)
        for conv in (self.first, self.second):
            nn.init.orthogonal_(conv.weight, gain=1.4)
        self.requires_grad_(False)

    def forward(self, image):
        first = F.relu_(self.first(2 * image - 1))
        second = F.relu_(self.second(F.avg_pool2d(first, 2)))
        return first, second


def gram(f):
    flat = f.flatten(2)
    return flat @ flat.mT / flat.shape[-1]


def resize(image, size):
    return F.interpolate(image, size=(size, size), mode="bicubic", align_corners=False).clamp_(0, 1)


def scale_adam(state, size):
    """The state of Adam for an enlarged canvas."""
    state = copy.deepcopy(state)
    for entry in state["state"].values():
        entry["exp_avg"] = F.interpolate(entry["exp_avg"], (size, size), mode="bicubic")
        entry["exp_avg_sq"] = F.interpolate(entry["exp_avg_sq"], (size, size), mode="bilinear").relu_()
    return state


def make_images(size=32):
    axis = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    disc = ((x ** 2 + y ** 2).sqrt() < 0.6).float()
    content = (0.2 + 0.5 * disc + 0.1 * x).expand(1, 3, size, size)
    waves = torch.stack([torch.sin(10 * (x * math.cos(a) + y * math.sin(a))) for a in (0.5, 0.6, 2.0)])
    return content, (0.5 + 0.4 * waves).unsqueeze(0)


class Painter:
    def __init__(self, content, style):
        self.content, self.style = content, style
        self.features = Features()
        self.image = resize(content, SCALES[0])
        self.average = None

    def losses(self, targets, grams):
        found = self.features(self.image)
        style = sum(F.mse_loss(gram(NormalizedGradient.apply(f, 1.0)), g) for f, g in zip(found, grams))
        content = F.mse_loss(NormalizedGradient.apply(found[1], CONTENT_WEIGHT), targets[1])
        return style, content

    def paint(self, steps=30, lr=0.03):
        optimizer = None
        for size in SCALES:
            with torch.no_grad():
                targets = self.features(resize(self.content, size))
                grams = [gram(f) for f in self.features(resize(self.style, size))]
            self.image = resize(self.image.detach(), size).requires_grad_()
            self.average = RunningAverage(self.image)
            fresh = optim.Adam([self.image], lr=lr, betas=(0.9, 0.99))
            if optimizer is not None:
                fresh.load_state_dict(scale_adam(optimizer.state_dict(), size))
            optimizer = fresh
            for _ in range(steps):
                style, content = self.losses(targets, grams)
                optimizer.zero_grad()
                (style + content).backward()
                optimizer.step()
                with torch.no_grad():
                    self.image.clamp_(0, 1)
                self.average.update(self.image)
            print(f"size {size}: style {style.item():.4f} content {content.item():.4f}")
            self.image.data = self.average.get()
        return self.image.detach()


painter = Painter(*make_images())
picture = painter.paint()
print(f"picture {tuple(picture.shape)}, mean {picture.mean().item():.3f}")

"""Segmentation of vessels in scans with few masks and many unlabelled scans, by virtual adversarial training: the
prediction should not change in the direction in which it is most sensitive.
"""
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(41)

SIZE, STEPS = 20, 50
XI, EPSILON = 1.0, 3.0


def scans(count):
    """Crossing bright tubes over a noisy ground, and their masks."""
    axis = torch.linspace(-1, 1, SIZE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    mask = torch.zeros(count, SIZE, SIZE, dtype=torch.bool)
    for _ in range(2):
        angle = 3.1416 * torch.rand(count, 1, 1)
        offset = torch.rand(count, 1, 1) - 0.5
        bend = 0.3 * torch.randn(count, 1, 1)
        along = x * angle.cos() + y * angle.sin()
        across = y * angle.cos() - x * angle.sin()
        mask |= (across - offset - bend * along ** 2).abs() < 0.16
    scan = 1.2 * mask.float() + 0.5 * torch.randn(count, SIZE, SIZE)
    return scan.unsqueeze(1), mask.float().unsqueeze(1)


def unit(inp, out):
    return nn.Sequential(nn.Conv2d(inp, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True))


class Segmenter(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.fine = unit(1, width)
        self.wide = nn.Sequential(nn.MaxPool2d(2), unit(width, width), nn.Upsample(scale_factor=2))
        self.merge = unit(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        fine = self.fine(x)
        return self.out(self.merge(torch.cat([fine, self.wide(fine)], dim=1)))


@contextlib.contextmanager
def statistics_on_hold(model):
    """Normalize with the statistics of the batch, without counting it in the running ones."""
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True


def per_sample_unit(d):
    return d / (d.flatten(1).norm(dim=1).view(-1, 1, 1, 1) + 1e-8)


def divergence(logits, reference):
    """KL of the Bernoulli distribution of each pixel from the reference."""
    p = torch.sigmoid(reference)
    gap = p * (F.logsigmoid(reference) - F.logsigmoid(logits))
    gap = gap + (1 - p) * (F.logsigmoid(-reference) - F.logsigmoid(-logits))
    return gap.mean()


def adversarial_direction(model, images, reference):
    d = per_sample_unit(torch.randn_like(images)).requires_grad_()
    grad, = torch.autograd.grad(divergence(model(images + XI * d), reference), d)
    return per_sample_unit(grad)


def vat_loss(model, images):
    with statistics_on_hold(model):
        with torch.no_grad():
            reference = model(images)
        shift = EPSILON * adversarial_direction(model, images, reference)
        return divergence(model(images + shift), reference)


def dice(model, images, masks):
    model.eval()
    with torch.inference_mode():
        guess = (model(images) > 0).float()
    model.train()
    return (2 * (guess * masks).sum() / (guess.sum() + masks.sum())).item()


model = Segmenter()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
images, masks = scans(12)
extra, _ = scans(80)
test_images, test_masks = scans(32)

for step in range(STEPS):
    rows = torch.randperm(len(images))[:6]
    more = torch.randperm(len(extra))[:6]
    supervised = F.binary_cross_entropy_with_logits(model(images[rows]), masks[rows])
    smoothness = vat_loss(model, extra[more])
    optimizer.zero_grad()
    (supervised + smoothness).backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1}: supervised {supervised.item():.3f} smoothness {smoothness.item():.4f} "
              f"dice {dice(model, test_images, test_masks):.3f}")

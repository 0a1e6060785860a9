"""Semi-supervised segmentation of lesions in CT-like slices with a mean teacher.

A few slices have masks, many have none. The student learns from the masks and from its agreement with the teacher,
whose weights are an exponential moving average of the student's. The teacher is the model that is delivered.
"""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)

SIZE, STEPS, RAMP = 24, 48, 24
LABELLED, UNLABELLED = 24, 96


def slices(count):
    """Soft tissue near 60 units with a gradient, one or two darker lesions, noise; and the masks of the lesions."""
    axis = torch.linspace(-1, 1, SIZE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    tissue = 60 + 8 * torch.randn(count, 1, 1) * x + 8 * torch.randn(count, 1, 1) * y
    mask = torch.zeros(count, SIZE, SIZE)
    for _ in range(2):
        center = torch.rand(count, 2, 1, 1) * 1.4 - 0.7
        radius = 0.2 + 0.2 * torch.rand(count, 1, 1)
        mask = torch.maximum(mask, ((x - center[:, 0]) ** 2 + (y - center[:, 1]) ** 2 < radius ** 2).float())
    image = tissue - 22 * mask + 10 * torch.randn(count, SIZE, SIZE)
    return image.unsqueeze(1), mask.unsqueeze(1)


def conv_block(inp, out):
    return nn.Sequential(nn.Conv2d(inp, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                         nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.down = conv_block(1, width)
        self.deep = conv_block(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge = conv_block(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        shallow = self.down(x)
        deep = self.deep(F.max_pool2d(shallow, 2))
        return self.out(self.merge(torch.cat([shallow, self.up(deep)], dim=1)))


class MeanTeacher:
    def __init__(self, student, decay=0.9):
        self.model = copy.deepcopy(student).requires_grad_(False).eval()
        self.decay = decay
        self.updates = 0

    @torch.no_grad()
    def update(self, student):
        self.updates += 1
        decay = min(self.decay, 1 - 1 / (self.updates + 1))
        for slow, fast in zip(self.model.parameters(), student.parameters()):
            slow.lerp_(fast, 1 - decay)

    @torch.no_grad()
    def predict(self, images):
        return torch.sigmoid(self.model(images))


def dice_loss(logits, mask):
    prob = torch.sigmoid(logits)
    overlap = (prob * mask).sum(dim=(1, 2, 3))
    total = prob.sum(dim=(1, 2, 3)) + mask.sum(dim=(1, 2, 3))
    return (1 - (2 * overlap + 1) / (total + 1)).mean()


@torch.no_grad()
def dice_score(model, images, masks):
    training = model.training
    model.eval()
    guess = (model(images) > 0).float()
    model.train(training)
    return (2 * (guess * masks).sum() / (guess.sum() + masks.sum())).item()


def augment(images):
    return images + 4 * torch.randn_like(images)


student = UNet()
teacher = MeanTeacher(student)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
images, masks = slices(LABELLED)
extra, _ = slices(UNLABELLED)
test_images, test_masks = slices(24)

for step in range(STEPS):
    rows = torch.randperm(LABELLED)[:6]
    more = torch.randperm(UNLABELLED)[:6]
    logits = student(augment(torch.cat([images[rows], extra[more]])))
    known, unknown = logits.split(6)
    supervised = F.binary_cross_entropy_with_logits(known, masks[rows]) + dice_loss(known, masks[rows])
    weight = math.exp(-5 * (1 - min(step / RAMP, 1)) ** 2)
    agreement = F.mse_loss(torch.sigmoid(unknown), teacher.predict(augment(extra[more])))
    loss = supervised + weight * agreement
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    teacher.update(student)
    if step % 12 == 11:
        print(f"step {step + 1}: supervised {supervised.item():.3f} agreement {agreement.item():.4f} "
              f"student {dice_score(student, test_images, test_masks):.3f} "
              f"teacher {dice_score(teacher.model, test_images, test_masks):.3f}")

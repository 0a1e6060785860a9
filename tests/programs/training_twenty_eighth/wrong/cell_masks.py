"""Semi-supervised segmentation of cells: a student on a few labelled images, an averaged teacher for the rest."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 24


def make_cells(n, generator):
    grid = torch.arange(SIZE, dtype=torch.float32)
    images, masks = [], []
    for _ in range(n):
        mask = torch.zeros(SIZE, SIZE, dtype=torch.bool)
        for _ in range(3):
            cy, cx = (torch.rand(2, generator=generator) * (SIZE - 8) + 4).tolist()
            r = 2.0 + 2.5 * torch.rand(1, generator=generator).item()
            mask |= (grid[:, None] - cy) ** 2 + (grid[None, :] - cx) ** 2 < r * r
        light = 0.8 + 0.4 * torch.rand(1, generator=generator)
        image = (0.45 + 0.25 * mask.float()) * light + 0.08 * torch.randn(SIZE, SIZE, generator=generator)
        images.append(image[None])
        masks.append(mask[None].float())
    return torch.stack(images), torch.stack(masks)


def conv_block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class SmallUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.enter = conv_block(1, width)
        self.down = conv_block(width, 2 * width)
        self.middle = conv_block(2 * width, 2 * width)
        self.up = conv_block(3 * width, width)
        self.output = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        fine = self.enter(x)
        coarse = self.middle(self.down(F.max_pool2d(fine, 2)))
        coarse = F.interpolate(coarse, scale_factor=2, mode="nearest")
        return self.output(self.up(torch.cat([fine, coarse], 1)))


class Teacher:
    """Exponential moving average of the student."""

    def __init__(self, student, decay=0.95):
        self.decay = decay
        self.net = copy.deepcopy(student).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, student):
        for averaged, current in zip(self.net.parameters(), student.parameters()):
            averaged.mul_(self.decay).add_(current, alpha=1 - self.decay)

    @torch.no_grad()
    def predict(self, images):
        return torch.sigmoid(self.net(images))


def soft_dice(logits, masks):
    probs = torch.sigmoid(logits)
    overlap = (probs * masks).sum(dim=(1, 2, 3))
    total = probs.sum(dim=(1, 2, 3)) + masks.sum(dim=(1, 2, 3))
    return (1 - (2 * overlap + 1) / (total + 1)).mean()


def perturb(images):
    return images * (0.8 + 0.4 * torch.rand(len(images), 1, 1, 1)) + 0.05 * torch.randn_like(images)


def iou(probs, masks):
    predicted = probs > 0.5
    overlap = (predicted & (masks > 0.5)).sum().item()
    return overlap / max((predicted | (masks > 0.5)).sum().item(), 1)


def train(student, teacher, labelled, unlabelled, steps=120, batch=8, ramp=60):
    images, masks = labelled
    optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
    for step in range(steps):
        student.train()
        pick = torch.randint(0, len(images), (batch,))
        extra = unlabelled[torch.randint(0, len(unlabelled), (batch,))]
        logits = student(torch.cat([perturb(images[pick]), perturb(extra)]))
        supervised = F.binary_cross_entropy_with_logits(logits[:batch], masks[pick]) + soft_dice(logits[:batch], masks[pick])
        consistency = F.mse_loss(torch.sigmoid(logits[batch:]), teacher.predict(extra))
        loss = supervised + 2.0 * min(1.0, step / ramp) * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        teacher.update(student)
        if (step + 1) % 40 == 0:
            print(f"step {step + 1:4d}  supervised {supervised.item():.3f}  consistency {consistency.item():.4f}")


torch.manual_seed(1)
generator = torch.Generator().manual_seed(21)
labelled = make_cells(12, generator)
unlabelled, _ = make_cells(96, generator)
test_images, test_masks = make_cells(48, generator)
student = SmallUNet()
teacher = Teacher(student)
train(student, teacher, labelled, unlabelled)
score = iou(teacher.predict(test_images), test_masks)
print(f"test IoU of the averaged model: {score:.3f}")

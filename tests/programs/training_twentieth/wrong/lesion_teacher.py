"""Semi-supervised lesion segmentation: a student network and its slowly averaged teacher.

Few slices carry a mask; the rest only enter through the consistency with the teacher, whose weights
are a running average of the student's.  The teacher is the network that is reported.
"""
import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(8)
SIZE, BATCH, STEPS = 24, 12, 120


def slices(n):
    grid = torch.arange(SIZE).float()
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    centre = 6 + 12 * torch.rand(n, 2, 1, 1)
    radius = 2.5 + 3.0 * torch.rand(n, 2, 1, 1)
    dist = ((yy - centre[:, :1]) / radius[:, :1]) ** 2 + ((xx - centre[:, 1:]) / radius[:, 1:]) ** 2
    mask = (dist < 1).float()
    tissue = F.avg_pool2d(torch.randn(n, 1, SIZE + 4, SIZE + 4), 5, stride=1) * 1.5
    # scanner units: offset and gain as they come from the reconstruction
    image = 3.0 + 2.0 * (tissue + 0.9 * mask + 0.3 * torch.randn(n, 1, SIZE, SIZE))
    return image, mask


def block(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


class SmallUNet(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.enter = block(1, width)
        self.down = block(width, 2 * width, stride=2)
        self.deep = block(2 * width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge = block(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        shallow = self.enter(x)
        deep = self.deep(self.down(shallow))
        return self.head(self.merge(torch.cat([shallow, self.up(deep)], dim=1)))


def dice_loss(logits, mask):
    p = torch.sigmoid(logits)
    overlap = (p * mask).sum((1, 2, 3))
    return (1 - (2 * overlap + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


@torch.no_grad()
def update_teacher(teacher, student, step, decay=0.97):
    decay = min(decay, 1 - 1 / (step + 2))
    for target, source in zip(teacher.parameters(), student.parameters()):
        target.mul_(decay).add_(source, alpha=1 - decay)


@torch.no_grad()
def dice_score(net, image, mask):
    was_training = net.training
    net.eval()
    pred = (net(image) > 0).float()
    net.train(was_training)
    return (2 * (pred * mask).sum() / (pred.sum() + mask.sum()).clamp(min=1)).item()


def main():
    labelled = slices(48)
    unlabelled, _ = slices(192)
    test = slices(96)

    student = SmallUNet()
    teacher = copy.deepcopy(student).requires_grad_(False).eval()
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)

    for step in range(STEPS):
        pick = torch.randint(len(labelled[0]), (BATCH,))
        other = unlabelled[torch.randint(len(unlabelled), (BATCH,))]
        image, mask = labelled[0][pick], labelled[1][pick]
        logits = student(torch.cat([image, other + 0.2 * torch.randn_like(other)]))
        supervised = F.binary_cross_entropy_with_logits(logits[:BATCH], mask) + dice_loss(logits[:BATCH], mask)
        with torch.no_grad():
            target = torch.sigmoid(teacher(other))
        consistency = (torch.sigmoid(logits[BATCH:]) - target).pow(2).mean()
        ramp = min(1.0, step / 60)
        loss = supervised + ramp * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_teacher(teacher, student, step)
        if (step + 1) % 40 == 0:
            print(f"step {step + 1:4d}  supervised {supervised.item():.4f}  consistency {consistency.item():.4f}")

    scores = dice_score(teacher, *test), dice_score(student, *test)
    print(f"test dice: teacher {scores[0]:.3f}  student {scores[1]:.3f}")
    return scores, teacher, student


if __name__ == "__main__":
    scores, teacher, student = main()

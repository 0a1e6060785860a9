"""Semi-supervised leaf segmentation: frozen pretrained stem, student with a mean teacher, few labelled masks."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

SEED = 17
SIZE = 16
LABELLED = 48
STEPS = 160


def make_leaves(n=320):
    g = torch.Generator().manual_seed(SEED)
    axis = torch.linspace(-1, 1, SIZE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    cx, cy, a, b = ((torch.rand(4, n, 1, 1, generator=g) - 0.5) * torch.tensor([0.8, 0.8, 0.3, 0.3])[:, None, None, None])
    mask = (((x - cx) / (0.5 + a)) ** 2 + ((y - cy) / (0.5 + b)) ** 2 < 1).float()
    image = torch.stack([0.7 * mask, -0.5 * mask, 0.2 * x.expand(n, -1, -1)], dim=1)
    return image + 0.5 * torch.randn(n, 3, SIZE, SIZE, generator=g), mask


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = block(3, 12)
        self.body = nn.Sequential(block(12, 16), nn.Dropout2d(0.1), block(16, 16))
        self.head = nn.Conv2d(16, 1, 1)
        self.frozen = False

    def freeze_stem(self):
        self.frozen = True
        self.stem.requires_grad_(False)
        return self.train(self.training)

    def train(self, mode=True):
        super().train(mode)
        if self.frozen:
            self.stem.eval()
        return self

    def forward(self, x):
        return self.head(self.body(self.stem(x))).squeeze(1)


def pretrain_stem(model, image):
    """Denoising pretext task for the stem alone; its reconstruction head is thrown away."""
    decoder = nn.Conv2d(12, 3, 1)
    optimizer = torch.optim.Adam([*model.stem.parameters(), *decoder.parameters()], lr=1e-2)
    for index in torch.randperm(len(image)).split(32):
        loss = F.mse_loss(decoder(model.stem(image[index])), F.avg_pool2d(image[index], 3, 1, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.zero_grad()


@torch.no_grad()
def update_teacher(teacher, student, momentum):
    for slow, fast in zip(teacher.parameters(), student.parameters()):
        slow.mul_(momentum).add_(fast, alpha=1 - momentum)
    for slow, fast in zip(teacher.buffers(), student.buffers()):
        slow.copy_(fast)


@torch.no_grad()
def iou(model, image, mask):
    mode = model.training
    p = model.eval()(image) > 0
    model.train(mode)
    return ((p & (mask > 0)).sum() / (p | (mask > 0)).sum()).item()


def main():
    torch.manual_seed(SEED)
    image, mask = make_leaves()
    test = slice(256, None)
    student = Segmenter()
    pretrain_stem(student, image[:256])
    student.freeze_stem()
    teacher = copy.deepcopy(student).requires_grad_(False).eval()
    optimizer = torch.optim.AdamW(student.parameters(), lr=5e-3, weight_decay=1e-3)
    before = iou(student, image[test], mask[test])
    for step in range(STEPS):
        few, many = torch.randint(LABELLED, (8,)), torch.randint(LABELLED, 256, (16,))
        noisy = torch.cat([image[few], image[many] + 0.2 * torch.randn_like(image[many])])
        logits = student(noisy)
        goal = teacher(image[many]).sigmoid()
        supervised = F.binary_cross_entropy_with_logits(logits[:8], mask[few])
        consistency = F.mse_loss(logits[8:].sigmoid(), goal)
        loss = supervised + min(1.0, step / 80) * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_teacher(teacher, student, min(0.98, (step + 1) / (step + 10)))
    scores = iou(student, image[test], mask[test]), iou(teacher, image[test], mask[test])
    print(f"IoU before {before:.3f}, student {scores[0]:.3f}, teacher {scores[1]:.3f}, loss {loss.item():.3f}")
    return student, teacher


if __name__ == "__main__":
    student, teacher = main()

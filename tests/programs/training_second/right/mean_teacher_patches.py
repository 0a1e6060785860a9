import copy

import torch
import torch.nn.functional as F
from torch import nn


class PatchNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.SiLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.features(x))


class MeanTeacher:
    def __init__(self, student, decay=0.95):
        self.student = student
        self.teacher = copy.deepcopy(student).requires_grad_(False).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self):
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters()):
            slow.lerp_(fast, 1 - self.decay)
        for slow, fast in zip(self.teacher.buffers(), self.student.buffers()):
            slow.copy_(fast)

    @torch.no_grad()
    def predict(self, x):
        return self.teacher(x).softmax(1)


def patches(count, generator):
    labels = torch.randint(0, 3, (count,), generator=generator)
    grid = torch.arange(10) % 2
    kinds = torch.stack([grid[:, None].expand(10, 10), grid[None, :].expand(10, 10), (grid[:, None] + grid[None, :]) % 2])
    return kinds[labels].unsqueeze(1).float() + 0.6 * torch.randn(count, 1, 10, 10, generator=generator), labels


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    images, labels = patches(30, generator)
    unlabeled, _ = patches(240, generator)
    test_images, test_labels = patches(120, generator)
    student = PatchNet().train()
    pair = MeanTeacher(student)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.03, momentum=0.9)
    for step in range(40):
        extra = unlabeled[torch.randint(0, 240, (30,), generator=generator)]
        logits = student(torch.cat([images, extra + 0.1 * torch.randn_like(extra)]))
        supervised = F.cross_entropy(logits[:30], labels)
        consistency = F.mse_loss(logits[30:].softmax(1), pair.predict(extra))
        loss = supervised + min(1.0, step / 20) * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        pair.update()
        if step % 10 == 9:
            accuracy = (pair.predict(test_images).argmax(1) == test_labels).float().mean().item()
            print(f"step {step + 1} loss {loss.item():.4f} teacher acc {accuracy:.3f}")


if __name__ == "__main__":
    main()

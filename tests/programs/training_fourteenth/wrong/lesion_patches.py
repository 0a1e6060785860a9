"""Few labelled and many unlabelled skin patches: a student with noisy inputs follows a slowly moving teacher."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 4
SIZE = 12
CLASSES = 4
MOMENTUM = 0.98
RAMP = 40
STEPS = 240
torch.manual_seed(SEED)


def make_patches(n, rng):
    """Round, ring-shaped, two-part and streaked lesions with hair-like noise."""
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    images, labels = [], rng.integers(0, CLASSES, n)
    for label in labels:
        cy, cx = rng.uniform(4.5, 6.5, 2)
        r = np.hypot(yy - cy, xx - cx)
        if label == 0:
            img = np.exp(-(r / 3.0) ** 2)
        elif label == 1:
            img = np.exp(-((r - 3.2) / 1.2) ** 2)
        elif label == 2:
            img = np.exp(-(np.hypot(yy - cy - 2.5, xx - cx) / 2) ** 2) + np.exp(-(np.hypot(yy - cy + 2.5, xx - cx) / 2) ** 2)
        else:
            img = np.exp(-((yy - cy) / 1.5) ** 2 - ((xx - cx) / 5) ** 2)
        images.append(img + 0.6 * rng.normal(size=img.shape))
    return torch.tensor(np.stack(images), dtype=torch.float32).unsqueeze(1), torch.tensor(labels)


class PatchNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.GroupNorm(4, width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.GroupNorm(4, 2 * width), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Linear(2 * width * 9, CLASSES)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def teacher_from(student):
    """Same architecture and weights; the initialisation is skipped as all values come from the student."""
    with torch.device("meta"):
        teacher = PatchNet()
    teacher.load_state_dict(student.state_dict(), assign=True)
    return teacher.eval().requires_grad_(False)


@torch.no_grad()
def follow(teacher, student):
    for slow, fast in zip(teacher.parameters(), student.parameters()):
        slow.lerp_(fast, 1 - MOMENTUM)


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    rng = np.random.default_rng(SEED)
    x_lab, y_lab = make_patches(120, rng)
    x_unlab, _ = make_patches(1500, rng)
    x_test, y_test = make_patches(600, rng)

    student = PatchNet()
    teacher = teacher_from(student)
    opt = torch.optim.Adam(student.parameters(), lr=1.5e-2)
    for step in range(STEPS):
        lab = torch.randint(0, len(x_lab), (16,))
        unlab = torch.randint(0, len(x_unlab), (48,))
        noisy = x_unlab[unlab] + 0.3 * torch.randn(48, 1, SIZE, SIZE)
        with torch.no_grad():
            target = teacher(x_unlab[unlab]).softmax(1)
        weight = 2.0 * min(1.0, step / RAMP)
        supervised = F.cross_entropy(student(x_lab[lab] + 0.3 * torch.randn(16, 1, SIZE, SIZE)), y_lab[lab])
        consistency = F.mse_loss(student(noisy).softmax(1), target)
        loss = supervised + weight * consistency
        opt.zero_grad()
        loss.backward()
        opt.step()
        follow(teacher, student)
        if (step + 1) % 40 == 0:
            print(f"step {step + 1}: supervised {supervised.item():.3f} consistency {consistency.item():.4f} "
                  f"teacher acc {accuracy(teacher, x_test, y_test):.3f}")
    return student, teacher, accuracy(teacher, x_test, y_test)


if __name__ == "__main__":
    student, teacher, teacher_acc = main()
    print(f"final teacher accuracy {teacher_acc:.3f}")

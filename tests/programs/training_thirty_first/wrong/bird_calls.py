"""Small on-device classifier of bird calls, taught by a larger one through an intermediate layer."""
import torch
from torch import nn
import torch.nn.functional as F

BANDS = 40
SPECIES = 6
HINT_WEIGHT = 2.0


class CallNet(nn.Module):
    def __init__(self, widths):
        super().__init__()
        layers, size = [], BANDS
        for width in widths:
            layers += [nn.Linear(size, width), nn.ReLU()]
            size = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(size, SPECIES)

    def forward(self, x):
        return self.head(self.features(x))


class FeatureTap:
    """Keeps the last output of a layer, so that models need not return their features."""

    def __init__(self, layer):
        self.value = None
        self.handle = layer.register_forward_hook(self.keep)

    def keep(self, layer, inputs, output):
        self.value = output.detach()

    def close(self):
        self.handle.remove()


def make_calls(count, prototypes, mixing):
    labels = torch.randint(0, SPECIES, (count,))
    variant = torch.randint(0, prototypes.shape[1], (count,))
    latent = prototypes[labels, variant] + 0.6 * torch.randn(count, prototypes.shape[2])
    bands = torch.tanh(latent @ mixing) + 0.1 * torch.randn(count, BANDS)
    return bands, labels


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        score = (model(x).argmax(dim=1) == y).float().mean().item()
    model.train()
    return score


def train_teacher(teacher, x, y, steps=100):
    optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
    for _ in range(steps):
        rows = torch.randint(0, len(x), (128,))
        loss = F.cross_entropy(teacher(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    teacher.requires_grad_(False)
    return teacher.eval()


def main():
    torch.manual_seed(5)
    prototypes = torch.randn(SPECIES, 3, 10)
    mixing = torch.randn(10, BANDS) / 10 ** 0.5
    archive_x, archive_y = make_calls(2000, prototypes, mixing)
    field_x, field_y = make_calls(40, prototypes, mixing)
    pool_x, _ = make_calls(800, prototypes, mixing)
    test_x, test_y = make_calls(600, prototypes, mixing)

    teacher = train_teacher(CallNet([96, 48]), archive_x, archive_y)
    student = CallNet([48, 24])
    adapter = nn.Linear(24, 48)
    teacher_tap = FeatureTap(teacher.features)
    student_tap = FeatureTap(student.features)
    print(f"teacher accuracy {accuracy(teacher, test_x, test_y):.3f}")
    teacher.eval()

    optimizer = torch.optim.AdamW([*student.parameters(), *adapter.parameters()], lr=5e-3, weight_decay=1e-3)
    steps = 160
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    for step in range(steps):
        labelled = torch.randint(0, len(field_x), (32,))
        unlabelled = torch.randint(0, len(pool_x), (96,))
        batch = torch.cat([field_x[labelled], pool_x[unlabelled]])

        with torch.no_grad():
            teacher(batch)
        logits = student(batch)
        class_loss = F.cross_entropy(logits[: len(labelled)], field_y[labelled])
        hint_loss = F.mse_loss(adapter(student_tap.value), teacher_tap.value)
        loss = class_loss + HINT_WEIGHT * hint_loss

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if (step + 1) % 40 == 0:
            print(f"step {step + 1:3d}  class {class_loss.item():.4f}  hint {hint_loss.item():.4f}")

    test_score = accuracy(student, test_x, test_y)
    print(f"student accuracy {test_score:.3f}")
    teacher_tap.close()
    student_tap.close()


if __name__ == "__main__":
    main()

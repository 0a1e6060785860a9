"""FitNets-style distillation: the student's middle features should follow the teacher's (forward hooks)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(21)


class ConvNet(nn.Module):
    def __init__(self, width, classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.middle = nn.Sequential(nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU())
        self.classifier = nn.Sequential(nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(18 * width, classes))

    def forward(self, x):
        return self.classifier(self.middle(self.stem(x)))


class FeatureTap:
    """Keeps the latest output of a layer."""

    def __init__(self, layer):
        self.value = None
        self.handle = layer.register_forward_hook(self._store)

    def _store(self, module, inputs, output):
        self.value = output.detach()

    def close(self):
        self.handle.remove()


def stripes(n, noise):
    label = torch.randint(4, (n,))
    grid = torch.arange(12.0)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    bank = torch.stack([yy, xx, (yy + xx) / 1.4, (yy - xx) / 1.4])
    phase = 6.3 * torch.rand(n, 1, 1)
    return (torch.sin(1.6 * bank[label] + phase) + noise * torch.randn(n, 12, 12)).unsqueeze(1), label


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        result = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return result


def train_teacher(x, y, epochs=4):
    teacher = ConvNet(12)
    opt = torch.optim.Adam(teacher.parameters(), lr=5e-3)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(32):
            opt.zero_grad()
            F.cross_entropy(teacher(x[idx]), y[idx]).backward()
            opt.step()
    return teacher.eval().requires_grad_(False)


def distill(teacher, student, loader, epochs=8, hint_weight=1.0):
    adapter = nn.Conv2d(8, 24, 1)
    teacher_tap, student_tap = FeatureTap(teacher.middle), FeatureTap(student.middle)
    opt = torch.optim.Adam(list(student.parameters()) + list(adapter.parameters()), lr=5e-3)
    for epoch in range(epochs):
        hint_sum = ce_sum = 0.0
        for xb, yb in loader:
            with torch.no_grad():
                teacher(xb)
            logits = student(xb)
            hint = F.mse_loss(adapter(student_tap.value), teacher_tap.value)
            ce = F.cross_entropy(logits, yb)
            loss = ce + hint_weight * hint
            opt.zero_grad()
            loss.backward()
            opt.step()
            hint_sum += hint.item()
            ce_sum += ce.item()
        print(f"epoch {epoch}: ce {ce_sum / len(loader):.4f}  hint {hint_sum / len(loader):.4f}")
    teacher_tap.close()
    student_tap.close()
    return hint_sum / len(loader)


big_x, big_y = stripes(600, 0.8)
test_x, test_y = stripes(400, 0.8)
teacher = train_teacher(big_x, big_y)
print("teacher accuracy", round(accuracy(teacher, test_x, test_y), 3))
teacher.eval()

student = ConvNet(4)
loader = DataLoader(TensorDataset(big_x[:192], big_y[:192]), batch_size=32, shuffle=True)
final_hint = distill(teacher, student, loader)
student_acc = accuracy(student, test_x, test_y)
print("student accuracy", round(student_acc, 3))

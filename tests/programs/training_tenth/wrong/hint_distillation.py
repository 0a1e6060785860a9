"""Distil a small image classifier from a larger one with soft labels and a hint on the middle features."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
CLASSES, SIZE = 6, 12


def conv_unit(c_in, c_out, stride):
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU())


class ConvNet(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.stem = conv_unit(1, widths[0], 1)
        self.stage1 = conv_unit(widths[0], widths[1], 2)
        self.stage2 = conv_unit(widths[1], widths[2], 2)
        self.classify = nn.Linear(widths[2], CLASSES)

    def forward(self, x):
        x = self.stage2(self.stage1(self.stem(x)))
        return self.classify(x.mean(dim=(2, 3)))


class FeatureTap:
    """Keeps the newest output of a module."""

    def __init__(self, module):
        self.value = None
        self.handle = module.register_forward_hook(self.store)

    def store(self, module, inputs, output):
        self.value = output.detach()

    def remove(self):
        self.handle.remove()


class HintLoss(nn.Module):
    def __init__(self, student_width, teacher_width):
        super().__init__()
        self.regress = nn.Conv2d(student_width, teacher_width, 1)

    def forward(self, student_map, teacher_map):
        return F.mse_loss(self.regress(student_map), teacher_map)


def make_images(count, templates):
    labels = torch.randint(0, CLASSES, (count,))
    shifts = torch.randint(-2, 3, (count,)).tolist()
    images = torch.stack([torch.roll(templates[y], s, dims=-1) for y, s in zip(labels.tolist(), shifts)])
    return images + 0.9 * torch.randn(images.shape), labels


@torch.no_grad()
def accuracy(net, images, labels):
    net.eval()
    return (net(images).argmax(1) == labels).float().mean().item()


def train_teacher(net, images, labels, epochs=6):
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(epochs):
        net.train()
        for index in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            F.cross_entropy(net(images[index]), labels[index]).backward()
            optimizer.step()
    return net.eval().requires_grad_(False)


def distil(student, teacher, hint, images, labels, epochs=8, temperature=3.0, hint_weight=2.0):
    student_tap, teacher_tap = FeatureTap(student.stage1), FeatureTap(teacher.stage1)
    optimizer = torch.optim.Adam([*student.parameters(), *hint.parameters()], lr=3e-3)
    history = []
    for _ in range(epochs):
        student.train()
        total = 0.0
        for index in torch.randperm(len(images)).split(64):
            with torch.no_grad():
                soft = F.softmax(teacher(images[index]) / temperature, dim=1)
            logits = student(images[index])
            kd = F.kl_div(F.log_softmax(logits / temperature, dim=1), soft, reduction="batchmean") * temperature**2
            hint_loss = hint(student_tap.value, teacher_tap.value)
            loss = F.cross_entropy(logits, labels[index]) + kd + hint_weight * hint_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += hint_loss.item() * len(index)
        history.append(total / len(images))
    student_tap.remove(), teacher_tap.remove()
    return history


templates = torch.randn(CLASSES, 1, SIZE, SIZE)
train_x, train_y = make_images(768, templates)
test_x, test_y = make_images(512, templates)
teacher = train_teacher(ConvNet((16, 32, 48)), train_x, train_y)
student = ConvNet((4, 8, 16))
hint = HintLoss(8, 32)
history = distil(student, teacher, hint, train_x, train_y)
print(f"teacher {accuracy(teacher, test_x, test_y):.3f} student {accuracy(student, test_x, test_y):.3f}")
print("hint loss", [round(h, 4) for h in history])

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(41)
DIM, CLASSES, WIDTH = 40, 6, 128


class SignThrough(torch.autograd.Function):
    """Sign in the forward pass; the gradient passes where the latent value lies in [-1, 1]."""

    @staticmethod
    def forward(ctx, latent):
        ctx.save_for_backward(latent.abs() <= 1)
        return torch.where(latent >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad_output):
        (inside,) = ctx.saved_tensors
        return grad_output * inside


class BinaryLinear(nn.Module):
    def __init__(self, inputs, outputs, binary_input=True):
        super().__init__()
        self.latent = nn.Parameter(torch.empty(outputs, inputs).uniform_(-0.3, 0.3))
        self.binary_input = binary_input

    def forward(self, x):
        if self.binary_input:
            x = SignThrough.apply(x)
        scale = self.latent.detach().abs().mean(dim=1, keepdim=True)
        return F.linear(x, SignThrough.apply(self.latent) * scale)

    @torch.no_grad()
    def clip(self):
        self.latent.clamp_(-1, 1)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = BinaryLinear(DIM, WIDTH, binary_input=False)
        self.second = BinaryLinear(WIDTH, WIDTH)
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in range(2))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        h = self.norms[0](self.first(x))
        return self.head(self.norms[1](self.second(h)) + h)


def make_data(count, centres):
    y = torch.randint(CLASSES, (count,))
    side = torch.randint(2, (count,))
    return centres[y, side] + 1.1 * torch.randn(count, DIM), y


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


@torch.no_grad()
def recalibrate(model, x):
    for norm in model.norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    for chunk in x.split(250):
        model(chunk)
    model.eval()


centres = torch.randn(CLASSES, 2, DIM)
x, y = make_data(3000, centres)
test_x, test_y = make_data(800, centres)

teacher = nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, CLASSES))
optimizer = torch.optim.AdamW(teacher.parameters(), lr=3e-3, weight_decay=1e-2)
for step in range(200):
    idx = torch.randint(len(x), (128,))
    optimizer.zero_grad()
    F.cross_entropy(teacher(x[idx]), y[idx]).backward()
    optimizer.step()
teacher.requires_grad_(False).eval()

student = Student()
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
student.train()
for step in range(500):
    idx = torch.randint(len(x), (128,))
    soft = F.softmax(teacher(x[idx]) / 2, dim=1)
    logits = student(x[idx])
    loss = F.cross_entropy(logits, y[idx]) + 4 * F.kl_div(F.log_softmax(logits / 2, dim=1), soft, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    student.first.clip()
    student.second.clip()

recalibrate(student, x)
print(f"loss {loss.item():.4f}  teacher {accuracy(teacher, test_x, test_y):.3f}  student {accuracy(student, test_x, test_y):.3f}")

"""Data-free distillation: a generator looks for inputs on which student and teacher differ; the student learns them.

The teacher was trained on data that is no longer there. Its weights stay as they are.
"""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(17)

DIM, CLASSES, Z_DIM = 10, 5, 16


def make_data(n, centers):
    y = torch.randint(CLASSES, (n,))
    x = centers[y] + 0.7 * torch.randn(n, DIM)
    return x + 0.3 * torch.sin(3 * x.roll(1, 1)), y


def make_classifier(width):
    return nn.Sequential(
        nn.Linear(DIM, width), nn.BatchNorm1d(width), nn.ReLU(),
        nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(),
        nn.Linear(width, CLASSES),
    )


def train_teacher(x, y, steps=300):
    net = make_classifier(96)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(steps):
        idx = torch.randint(len(x), (128,))
        opt.zero_grad()
        F.cross_entropy(net(x[idx]), y[idx]).backward()
        opt.step()
    return net


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(Z_DIM, 64), nn.BatchNorm1d(64), nn.LeakyReLU(0.2),
            nn.Linear(64, 64), nn.BatchNorm1d(64), nn.LeakyReLU(0.2),
            nn.Linear(64, DIM),
        )

    def forward(self, n):
        return 2.5 * torch.tanh(self.net(torch.randn(n, Z_DIM)))


def disagreement(student_logits, teacher_logits):
    return F.l1_loss(student_logits, teacher_logits)


@torch.no_grad()
def accuracy(net, x, y):
    was_training = net.training
    net.eval()
    result = (net(x).argmax(1) == y).float().mean().item()
    net.train(was_training)
    return result


centers = torch.randn(CLASSES, DIM)
train_x, train_y = make_data(2000, centers)
test_x, test_y = make_data(2000, centers)

teacher = train_teacher(train_x, train_y)
teacher.eval()
for p in teacher.parameters():
    p.requires_grad = False
del train_x, train_y

student = make_classifier(32)
generator = Generator()
opt_s = torch.optim.Adam(student.parameters(), lr=3e-3)
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
sched_s = torch.optim.lr_scheduler.CosineAnnealingLR(opt_s, 200)

print(f"teacher accuracy {accuracy(teacher, test_x, test_y):.3f}, student before {accuracy(student, test_x, test_y):.3f}")
for it in range(200):
    # student: several steps on fixed samples
    for _ in range(4):
        with torch.no_grad():
            x = generator(128)
            target = teacher(x)
        loss_s = disagreement(student(x), target)
        opt_s.zero_grad()
        loss_s.backward()
        opt_s.step()

    # generator: one step towards samples on which the two differ; its slope runs through student and teacher
    student.eval()
    x = generator(128)
    loss_g = -disagreement(student(x), teacher(x)) + 0.1 * (x ** 2).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    student.train()
    sched_s.step()

    if it % 50 == 49:
        print(f"iteration {it + 1}  student loss {loss_s.item():.3f}  generator loss {loss_g.item():+.3f}  "
              f"student accuracy {accuracy(student, test_x, test_y):.3f}")

student.eval()
with torch.no_grad():
    agree = (student(test_x).argmax(1) == teacher(test_x).argmax(1)).float().mean().item()
print(f"student and teacher agree on real data: {agree:.3f}")

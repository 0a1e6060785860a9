"""Attention transfer between two CNNs: hooks on both, gradients only through the student."""
import torch
from torch import nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(2)


def blobs(n, side=12):
    quadrant = torch.randint(4, (n,))
    centre = torch.tensor([[3., 3.], [3., 8.], [8., 3.], [8., 8.]])[quadrant] + torch.randn(n, 2)
    grid = torch.arange(side).float()
    gy = torch.exp(-(grid - centre[:, :1]) ** 2 / 3)
    gx = torch.exp(-(grid - centre[:, 1:]) ** 2 / 3)
    return (gy[:, :, None] * gx[:, None] + 0.4 * torch.randn(n, side, side))[:, None], quadrant


def cnn(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(36 * width, 4),
    )


def attention(feature):
    return F.normalize(feature.pow(2).mean(1).flatten(1), dim=1)


features = {}


def keep_teacher(module, args, out):
    features["teacher"] = out.detach()


def keep_student(module, args, out):
    features["student"] = out


def score(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


x, y = blobs(600)
xt, yt = blobs(300)

teacher = cnn(16)
opt = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for epoch in range(4):
    for idx in torch.randperm(len(x)).split(50):
        opt.zero_grad()
        F.cross_entropy(teacher(x[idx]), y[idx]).backward()
        opt.step()
for p in teacher.parameters():
    p.requires_grad = False
print(f"teacher {score(teacher, xt, yt):.3f}")

student = cnn(4)
handles = [teacher[4].register_forward_hook(keep_teacher), student[4].register_forward_hook(keep_student)]
opt = torch.optim.Adam(student.parameters(), lr=3e-3)
for epoch in range(6):
    total = torch.zeros(3)
    for idx in torch.randperm(len(x)).split(50):
        t_logits = teacher(x[idx])
        s_logits = student(x[idx])
        ce = F.cross_entropy(s_logits, y[idx])
        kd = F.kl_div(F.log_softmax(s_logits / 3, 1), F.softmax(t_logits / 3, 1), reduction="batchmean") * 9
        at = (attention(features["student"]) - attention(features["teacher"])).pow(2).sum(1).mean()
        loss = 0.5 * ce + 0.5 * kd + 2.0 * at
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += torch.tensor([ce.item(), kd.item(), at.item()])
    print(f"epoch {epoch}  ce/kd/at {[round(v, 3) for v in (total / 12).tolist()]}")

for handle in handles:
    handle.remove()
features.clear()
print(f"student {score(student, xt, yt):.3f}")

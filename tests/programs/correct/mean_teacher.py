"""A mean teacher that follows its student under no_grad, after the step."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(13)
student = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
teacher = copy.deepcopy(student)
for parameter in teacher.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, foreach=True)


@torch.no_grad()
def follow(decay):
    for slow, fast in zip(teacher.parameters(), student.parameters()):
        slow.mul_(decay).add_(fast, alpha=1 - decay)
    for slow, fast in zip(teacher.buffers(), student.buffers()):
        slow.copy_(fast)


for x in torch.randn(3, 6, 4):
    with torch.no_grad():
        goal = teacher(x + 0.01).softmax(-1)
    loss = F.kl_div(student(x).log_softmax(-1), goal, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    follow(0.9)
print("done")

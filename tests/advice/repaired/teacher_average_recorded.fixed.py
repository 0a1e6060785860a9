"""expect: leaf-modified-inplace

A mean teacher follows its student with an in-place average outside of no_grad.
"""

import copy

import torch
from torch import nn
from torch.nn import functional as F


class MeanTeacher:
    def __init__(self, student, decay=0.99):
        self.student = student
        self.teacher = copy.deepcopy(student)  # role: leaf_made_here
        self.decay = decay

    def targets(self, x):
        with torch.no_grad():
            return self.teacher(x).softmax(-1)

    @torch.no_grad()
    def follow(self):
        pairs = zip(self.teacher.parameters(), self.student.parameters())
        for slow, fast in pairs:
            slow.mul_(self.decay).add_(fast, alpha=1 - self.decay)  # role: rejected_here


torch.manual_seed(36)
student = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
mean_teacher = MeanTeacher(student)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
x = torch.randn(6, 4)
loss = F.kl_div(student(x).log_softmax(-1), mean_teacher.targets(x), reduction="batchmean")
optimizer.zero_grad()
loss.backward()
optimizer.step()
mean_teacher.follow()

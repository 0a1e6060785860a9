"""expect: saved-tensor-modified-inplace

A distillation step updates the averaged teacher between its forward pass and the student's backward.
"""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(1)
student = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
teacher = AveragedModel(student, multi_avg_fn=get_ema_multi_avg_fn(0.5))
teacher.update_parameters(student)
optimizer = torch.optim.SGD(student.parameters(), lr=0.5)


def distill(x, temperature=2.0):
    soft = (teacher(x) / temperature).softmax(-1)  # role: saved_here
    hard = (student(x) / temperature).log_softmax(-1)
    return nn.functional.kl_div(hard, soft, reduction="batchmean")


class AfterForward:
    def __init__(self, *actions):
        self.actions = actions

    def run(self):
        for action in self.actions:
            action()


callbacks = AfterForward(lambda: teacher.update_parameters(student))  # role: modified_here
for x in torch.randn(3, 6, 4):
    loss = distill(x)
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    optimizer.step()
    callbacks.run()

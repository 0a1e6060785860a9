"""Semi-supervised training with a slowly moving teacher."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, n_in=10, n_out=4):
        super().__init__()
        self.inp = nn.Linear(n_in, 32)
        self.out = nn.Linear(32, n_out)

    def forward(self, x):
        hidden = F.gelu(self.inp(x))
        return self.out(hidden)


class MeanTeacher:
    def __init__(self, momentum=0.99):
        self.student = Net()
        self.teacher = copy.deepcopy(self.student)
        self.momentum = momentum
        self.optimizer = torch.optim.SGD(self.student.parameters(), lr=0.1)

    def follow(self):
        with torch.no_grad():
            for t, s in zip(self.teacher.parameters(), self.student.parameters()):
                t.mul_(self.momentum)
                t.add_(s, alpha=1.0 - self.momentum)

    def step(self, labelled, labels, unlabelled):
        supervised = F.cross_entropy(self.student(labelled), labels)
        noisy = unlabelled + 0.1 * torch.randn_like(unlabelled)
        prediction = self.student(noisy).softmax(-1)
        reference = self.teacher(unlabelled).softmax(-1)
        consistency = F.mse_loss(prediction, reference)
        loss = supervised + 3.0 * consistency
        self.optimizer.zero_grad()
        loss.backward()
        self.follow()
        self.optimizer.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(13)
    trainer = MeanTeacher()
    for _ in range(3):
        print(trainer.step(torch.randn(8, 10), torch.randint(0, 4, (8,)), torch.randn(16, 10)))

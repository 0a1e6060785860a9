"""A teacher that is to follow its student, by assignments to the loop's own names."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
student = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))  # role: leaf_made_here
teacher = copy.deepcopy(student).requires_grad_(False)  # role: leaf_made_here
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for step in range(4):
    x = torch.randn(16, 4)
    loss = (student(x + 0.1 * torch.randn_like(x)) - teacher(x)).square().mean() + student(x).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(teacher.parameters(), student.parameters()):
            slow.copy_(0.9 * slow + 0.1 * fast)  # role: replaced_here
print("done")

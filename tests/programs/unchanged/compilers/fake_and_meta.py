import torch
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode() as mode:
    x = torch.ones(2, 3)
    print(x @ torch.ones(3, 4))
    f = mode.from_tensor(torch.nn.Linear(3, 3).weight)
    print(type(f).__name__, f.shape)
m = torch.ones(2, device="meta", requires_grad=True)
(m * 2).sum().backward()
print(m.grad.device, m.grad.shape)
try:
    m.tolist()
except Exception as error:
    print(type(error).__name__, error)
import copy
kept = copy.deepcopy(torch.ones(2, requires_grad=True))  # memory that is watched from here on
with FakeTensorMode():
    print(torch.ones(2) * 2, torch.ones(3).add_(1))

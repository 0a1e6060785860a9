import os

os.environ["KINETO_LOG_LEVEL"] = "99"  # it tells the time

import torch
from torch.autograd.profiler import profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    optimizer.zero_grad()
    outputs = checkpoint(model, torch.ones(5, 3), use_reentrant=False)
    loss = (outputs.pow(2).sum() + 1e-3).sqrt()
    loss.backward()
    optimizer.step()


def change_what_was_saved():
    a = torch.ones(3, requires_grad=True)
    square = a * a
    a.data.zero_()
    square.sum().backward()
    a.data = torch.ones(3)


def fail():
    a = torch.ones(3, requires_grad=True)
    square = a.exp()
    square.mul_(2)
    try:
        square.sum().backward()
    except RuntimeError as error:
        print(type(error).__name__)


def grow():
    a = torch.zeros(3, requires_grad=True)
    a.sqrt().sum().backward()
    print(a.grad)


class Silent(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


for run in (step, change_what_was_saved, fail, grow):
    with profile(use_kineto=False) as recorded:
        run()
        with Silent():
            run()
    print(run.__name__, sorted((event.key, event.count) for event in recorded.key_averages()))

import collections
import functools

import torch
from torch.utils.checkpoint import checkpoint

METHODS = (
    "abs all any as_strided clone cpu data_ptr detach dim element_size equal exp is_complex is_contiguous isfinite isinf "
    "isnan item mul numel reshape size storage_offset stride sum to tolist untyped_storage view"
).split()
FUNCTIONS = "abs all any arange as_strided cat clone equal frombuffer isclose isfinite ones reshape stack sum zeros".split()

counts = collections.Counter()


def counted(owner, name):
    original = getattr(owner, name)

    @functools.wraps(original)
    def counting(*args, **kwargs):
        counts[f"{owner.__name__}.{name}"] += 1
        return original(*args, **kwargs)

    setattr(owner, name, counting)


for name in METHODS:
    counted(torch.Tensor, name)
for name in FUNCTIONS:
    counted(torch, name)

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


def pack():
    a, b = torch.ones(3, requires_grad=True), torch.ones(3)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        product = a * b
    b.add_(1)
    product.sum().backward()


def views():
    a = torch.ones(2, 3).view(6)[1:]
    a.zero_()
    torch.autograd.grad((a + torch.ones(5, requires_grad=True)).sum(), [], allow_unused=True)


for run in (step, change_what_was_saved, fail, grow, pack, views):
    try:
        run()
    except Exception as error:
        print(type(error).__name__, error)
    print(run.__name__, sorted(counts.items()))
    counts.clear()

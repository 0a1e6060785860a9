"""Goes through every door by which torch and Python call the lens, and shows what came of it."""

import threading
import traceback
import warnings

import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
warnings.simplefilter("always")


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 2 * x


class Doubled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.inner(x) * 2


def values():
    x = torch.arange(3.0, requires_grad=True)
    y = (x * 2 + 1).sigmoid()
    z = y.detach().clone()
    z.add_(1)[0] = 5
    torch.add(z, 1, out=torch.empty(3))
    y.sqrt().sum().backward()
    print(x.grad, z, x.is_leaf, y.grad_fn.name())
    print(y.grad)  # warns
    shared = torch.from_numpy(torch.ones(3).numpy())
    alias = shared.data
    alias.fill_(4)
    shared.data = torch.zeros(3)
    print(shared, alias, torch.utils.dlpack.to_dlpack(torch.ones(1)) is not None)
    print(torch.autograd.grad(Square.apply(x).sum(), x))


def modes():
    with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.autograd.set_detect_anomaly(False):
        print(torch.ones(1).requires_grad)
    with torch.inference_mode():
        print(torch.ones(1).is_inference())
    torch.set_grad_enabled(True)


def training():
    model = torch.nn.Sequential(Doubled(), torch.nn.BatchNorm1d(3))
    model.register_full_backward_hook(lambda module, given, taken: None)
    model.register_forward_hook(lambda module, given, result: None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    closing = torch.optim.LBFGS(model.parameters(), max_iter=1)
    for step in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3) * step).pow(2).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())

    def closure():
        closing.zero_grad()
        loss = model(torch.ones(4, 3)).sum()
        loss.backward()
        return loss

    print(closing.step(closure).item())
    model.train(False)
    model.zero_grad()
    model[0].inner = torch.nn.Linear(3, 3)
    print(model(torch.ones(1, 3)).shape)


def hooks():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda gradient: gradient * 3)
    x.register_post_accumulate_grad_hook(lambda leaf: print("given", leaf.grad))
    y = x * 2
    y.grad_fn.register_hook(lambda given, taken: None)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda packed: packed):
        z = y.exp()
    z.sum().backward()
    for reentrant in (True, False):
        checkpoint(lambda value: value.sin().cos(), x, use_reentrant=reentrant).sum().backward()
    print(x.grad)


def transforms():
    x = torch.arange(3.0)
    print(torch.func.grad(lambda value: value.sin().sum())(x), torch.func.vmap(torch.sin)(x))
    print(torch.autograd.functional.jacobian(lambda value: value**2, x))
    print(torch.autograd.gradcheck(lambda value: value.sin(), torch.ones(2, dtype=torch.double, requires_grad=True)))


def failures():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.mul_(2)
    for call in (y.sum().backward, lambda: x.add_(1), lambda: torch.ones(2) @ torch.ones(3), lambda: x.backward()):
        try:
            call()
        except RuntimeError:
            print(traceback.format_exc())
    warnings.warn("seen", stacklevel=2)


def refuse(*args):
    raise OSError("the program's own")


def own_errors():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(refuse)
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    optimizer.register_step_pre_hook(refuse)
    for call in (x.sum().backward, optimizer.step):
        try:
            call()
        except OSError as error:
            print(repr(error), error.__context__)


for part in (values, modes, training, hooks, transforms, failures, own_errors):
    part()
thread = threading.Thread(target=values)
thread.start()
thread.join()
torch.ones(2).backward()

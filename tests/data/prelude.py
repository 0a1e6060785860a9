import ast, asyncio, contextlib, copy, functools, gc, io, itertools, logging, pickle, random, sys, threading, traceback, types, warnings, weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.autograd.forward_ad as fwAD
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
random.seed(0)
np.random.seed(0)


def show(*values):
    for value in values:
        if isinstance(value, torch.Tensor):
            facts = [type(value).__name__, tuple(value.shape), str(value.dtype), value.requires_grad, value._is_view()]
            for name in ("is_leaf", "_version", "retains_grad", "grad_fn"):
                try:
                    fact = getattr(value, name)
                    facts.append(fact if isinstance(fact, (bool, int)) else type(fact).__name__)
                except RuntimeError as error:
                    facts.append(str(error))
            if value.is_leaf or value.retains_grad:
                facts.append(value.grad)
            print(*facts, value)
        else:
            print(type(value).__name__, value)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Pair(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x * factor, x + factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, one, other):
        print("pair", one is None, other is None)
        return ctx.factor * one if one is not None else other, None


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, how):
        ctx.how = how
        if how == "forward":
            raise LookupError("in forward")
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if ctx.how == "raise":
            raise LookupError("in backward")
        return (gradient, gradient, None) if ctx.how == "count" else (gradient[:1], None) if ctx.how == "shape" else ("no", None)


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sin()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return gradient


class Counting(TorchFunctionMode):
    calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


class Listing(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, Tagged):
            result.tag = getattr(func, "__name__", "?")
        return result


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return F.relu(self.drop(self.norm(self.line(x.reshape(-1, 3)))), inplace=True) * self.scale


@contextlib.contextmanager
def managed(name):
    print("enter", name)
    try:
        yield name
    except ArithmeticError as error:
        print("swallowed", error)
    finally:
        print("leave", name)


def numbers(*tensors):
    with torch.no_grad():
        for tensor in tensors:
            yield tensor * 2


def deep(level):
    return deep(level - 1) if level else torch.ones(2) @ torch.ones(3)


a = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)
b = torch.tensor([[1.5, 0.25, -0.75], [1.0, 2.0, 3.0]], requires_grad=True)
c = a * b[0]
d = torch.ones(3)

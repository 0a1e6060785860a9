"""A tensor resized inside `torch.func.functionalize`."""
import torch
def fn(x):
    x.resize_(10)
    x.fill_(2)
print(torch.ops.aten.sum.default(torch.ones(2)))
x = torch.empty(0)
torch.func.functionalize(fn)(x)
print(x)

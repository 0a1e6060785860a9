import torch
calls = []
original = torch.Tensor.add
def add(self, *args, **kwargs):
    calls.append("add")
    return original(self, *args, **kwargs)
torch.Tensor.add = add
print(torch.ones(1).add(1), calls)
torch.Tensor.add = original
torch.relu = lambda x: "mine"
print(torch.relu(1))
backward = torch.Tensor.backward
def noisy(self, *args, **kwargs):
    print("backward of", tuple(self.shape))
    return backward(self, *args, **kwargs)
torch.Tensor.backward = noisy
x = torch.ones(2, requires_grad=True)
(x * 2).sum().backward()
print(x.grad)
del torch.ones
try:
    torch.ones(1)
except AttributeError as error:
    print(error)
engine = torch.autograd.backward
torch.autograd.backward = lambda *a, **k: print("no backward")
torch.Tensor.backward = backward
(x * 2).sum().backward()
step = torch.optim.SGD.step
torch.optim.SGD.step = lambda self, closure=None: print("step") or step(self, closure)
p = torch.nn.Parameter(torch.zeros(1)); p.grad = torch.zeros(1)
torch.optim.SGD([p], lr=1.0).step()
torch.Tensor.shout = lambda self: "!"
print(x.shout())

"""A module uses a parameter that it does not know of, so the optimizer was never given it.

`parameters()` finds what is assigned to an attribute as a `Parameter` or a `Module`. Layers in a plain list or a
dictionary, and tensors that only require grad, are used in the forward pass and get gradients, but the optimizer does
not see them, `.to(device)` does not move them and `state_dict()` does not save them.

## Fails

```python
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(2, 1)
        self.blocks = [torch.nn.Linear(2, 2)]  # leaf_made_here


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # optimizer_made_here
before = net.blocks[0].weight.detach().clone()
net.head(net.blocks[0](torch.ones(1, 2))).sum().backward()
optimizer.step()  # needed_here
print(torch.equal(before, net.blocks[0].weight))  # observed_here
```

## Fixed

```python
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(2, 1)
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(2, 2)])


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
before = net.blocks[0].weight.detach().clone()
net.head(net.blocks[0](torch.ones(1, 2))).sum().backward()
optimizer.step()
print(torch.equal(before, net.blocks[0].weight))
```
"""

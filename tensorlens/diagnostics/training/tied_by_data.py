"""Two parameters were tied by assigning `.data`, which ties their memory and not the parameters.

Both keep their own gradient, and an optimizer that has both changes the shared memory twice in each step, by two halves
of the gradient and with two sets of averages. To tie weights, both modules hold the same `Parameter`.

## Fails

```python
import torch

first, second = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
second.weight.data = first.weight.data  # shared_here
(first(torch.ones(1, 1)) + 2 * second(torch.ones(1, 1))).sum().backward()  # needed_here
print(first.weight.grad, second.weight.grad)  # observed_here
```

## Fixed

```python
import torch

first, second = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
second.weight = first.weight
(first(torch.ones(1, 1)) + 2 * second(torch.ones(1, 1))).sum().backward()
print(first.weight.grad)
```
"""

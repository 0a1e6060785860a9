"""A full backward hook fired for a module none of whose inputs require grad.

Such a hook is given the gradients of the module's inputs and is called when they are ready. If the inputs are plain
data, as in the first layer of a network, there are no such gradients: the hook gets None for them and is called as soon
as the gradients of the outputs are there, before those of the parameters.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 1)
layer.register_full_backward_hook(lambda module, inputs, outputs: None)  # hook_registered_here
batch = torch.rand(3, 2)  # value_made_here
layer(batch).sum().backward()  # needed_here
```

## Fixed

```python
import torch

layer = torch.nn.Linear(2, 1)
layer.register_full_backward_hook(lambda module, inputs, outputs: None)
batch = torch.rand(3, 2, requires_grad=True)
layer(batch).sum().backward()
```
"""

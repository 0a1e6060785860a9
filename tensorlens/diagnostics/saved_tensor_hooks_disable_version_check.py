"""A tensor saved under `saved_tensors_hooks` was changed in place, and backward did not notice.

With such hooks autograd keeps what the first hook returned in place of the tensor, and gives up the check of its
version. If the hook returned the tensor itself, a later change in place changes what is kept, and the gradient is wrong
without a word.

## Fails

```python
import torch

weight = torch.tensor([2.0, 3.0], requires_grad=True)
hidden = weight * 1
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):  # mode_entered_here
    loss = (hidden * hidden).sum()  # saved_here
hidden.zero_()  # modified_here
loss.backward()  # needed_here
print(weight.grad)  # observed_here
```

## Fixed

```python
import torch

weight = torch.tensor([2.0, 3.0], requires_grad=True)
hidden = weight * 1
with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
    loss = (hidden * hidden).sum()
loss.backward()
print(weight.grad)
```
"""

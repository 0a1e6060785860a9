"""A bare number was passed as the gradient to start backward from.

Backward takes a tensor, or a sequence with one gradient for each result. It sees that a number is no tensor, takes it
for a sequence and tries to go through it; the message tells of that attempt and does not speak of gradients.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
loss = weight.square().sum()
start = 0.5  # value_made_here
loss.backward(start)  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
loss = weight.square().sum()
start = torch.tensor(0.5)
loss.backward(start)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected
from tensorlens.diagnostics.shared.rejected_call import RejectedCall

find = rejected(
    "grad-output-not-iterable",
    ("needed_here", "value_made_here:plain"),
    "the gradient passed to {op} is a bare number",
    "backward takes a tensor, or one gradient for each result, and tried to go through the number",
    "pass a tensor: `torch.tensor(0.5)`",
    "or scale the loss itself before backward",
    when=RejectedCall.is_backward,
)

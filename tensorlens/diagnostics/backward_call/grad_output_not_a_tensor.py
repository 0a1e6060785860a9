"""The gradient passed to backward is neither a tensor nor None.

Backward multiplies this gradient into every formula on its way, so it has to be a tensor with the shape of the result.
Numbers and lists are not converted, since their data type and device would be a guess.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
start = [1.0, 0.5]  # value_made_here
(weight * 2).backward(start)  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
start = torch.tensor([1.0, 0.5])
(weight * 2).backward(start)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-output-not-a-tensor",
    ("needed_here", "value_made_here:plain"),
    "the gradient passed to {op} is not a tensor",
    "backward multiplies it with tensors and does not convert numbers or lists",
    "pass a tensor with the shape of the result, such as `torch.tensor([...])` or `torch.ones_like(...)`",
)

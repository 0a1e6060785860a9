"""An in-place activation with a negative slope was differentiated.

The in-place form keeps only its result, and tells from its sign whether the input was negative. With a negative slope
the sign of the result says nothing any more, so the derivative cannot be computed.

## Fails

```python
import torch

weight = torch.tensor([-1.0, 2.0], requires_grad=True)
hidden = weight * 1
torch.nn.functional.leaky_relu_(hidden, -0.5)  # graph_built_here
hidden.sum().backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([-1.0, 2.0], requires_grad=True)
hidden = weight * 1
hidden = torch.nn.functional.leaky_relu(hidden, -0.5)
hidden.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "inplace-activation-negative-slope",
    ("needed_here", "graph_built_here"),
    "an in-place activation with a negative slope was differentiated",
    "it keeps only its result, whose sign no longer tells the sign of the input",
    "use the activation that makes a new tensor, without `inplace=True`",
)

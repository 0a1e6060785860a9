"""The gradient of a decomposition depends on a choice that the decomposition leaves open.

Complex eigenvectors and singular vectors are fixed up to a factor of size 1 for each of them. A loss that changes with
that factor has no gradient; one that does not, such as a norm or a product of a vector with its own conjugate, has.

## Fails

```python
import torch

matrix = torch.tensor([[1.0, 2.0], [-2.0, 0.5]], requires_grad=True)
values, vectors = torch.linalg.eig(matrix)  # graph_built_here
score = vectors.imag.sum()  # value_made_here
score.backward()  # needed_here
```

## Fixed

```python
import torch

matrix = torch.tensor([[1.0, 2.0], [-2.0, 0.5]], requires_grad=True)
values, vectors = torch.linalg.eig(matrix)
score = values.abs().sum()
score.backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "ill-defined-decomposition-gradient",
    ("needed_here", "graph_built_here:stopped", "value_made_here:stopped"),
    "the gradient depends on a choice that the decomposition leaves open",
    "each vector is fixed up to a factor of size 1, and the loss changes with it",
    "use the values, or what does not change with the factor: `.abs()`, a product with the conjugate",
)

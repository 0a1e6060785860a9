"""A hook that unpacks saved tensors did not return a tensor.

What the first hook packed, the second one has to turn back into a tensor of the same values: a file has to be read, a
compressed form expanded.

## Fails

```python
import torch


def unpack(place):
    return place  # returned_here


weight = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda tensor: "place 1", unpack):  # mode_entered_here
    grown = weight.exp()
grown.sum().backward()  # needed_here
```

## Fixed

```python
import torch

kept = {}


def pack(tensor):
    kept["place 1"] = tensor
    return "place 1"


weight = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, kept.__getitem__):
    grown = weight.exp()
grown.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "unpack-hook-returned-non-tensor",
    (
        "returned_here",
        "mode_entered_here:hook",
        "needed_here:calling",
    ),
    "an unpack hook returned something that is no tensor",
    "{function} handed back {handed}, where backward needs the tensor that was packed",
    "return the tensor itself, with the shape, dtype and device that it had when it was packed",
)

"""A change was made to the result of indexing with a list, a mask or an index tensor, and was lost.

A slice or a single index gives a view. A list, a mask or a tensor of indices picks elements that lie anywhere, so the
result is a copy, and a change in place changes the copy. Assigning to the indexed expression is another thing: that
writes into the tensor itself. `reshape` and `flatten` copy as well where the strides leave no other way.

## Fails

```python
import torch

scores = torch.zeros(3)
chosen = scores[torch.tensor([True, False, True])]  # value_made_here
chosen.fill_(5)  # modified_here
print(scores)  # observed_here
```

## Fixed

```python
import torch

scores = torch.zeros(3)
scores[torch.tensor([True, False, True])] = 5
print(scores)
```
"""

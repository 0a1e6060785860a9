"""A list of layers was made by multiplying a list, so every place holds the same layer.

`[layer] * 3` repeats the reference. All three places have the same parameters and one gradient, which is the sum of
three. That may be meant, as sharing of weights; most often three layers were.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 2)
model = torch.nn.Sequential(*[layer] * 3)  # shared_here
print(len(list(model.parameters())))  # observed_here
```

## Fixed

```python
import torch

model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(3)))
print(len(list(model.parameters())))
```
"""

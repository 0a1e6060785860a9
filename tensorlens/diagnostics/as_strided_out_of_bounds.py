"""`as_strided` describes a view that reaches past the end of the memory.

Size, strides and offset are taken as they are; nothing is read beyond the last element of the memory.

## Fails

```python
import torch

values = torch.ones(3)  # base_made_here
window = values.as_strided((2, 2), (1, 2))  # rejected_here
```

## Fixed

```python
import torch

values = torch.ones(3)
window = values.as_strided((2, 2), (1, 1))
```
"""

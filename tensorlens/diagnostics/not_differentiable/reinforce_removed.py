"""`reinforce` was called on a tensor, which was removed long ago.

In very old PyTorch a sampled tensor remembered its distribution, and `reinforce` gave it a reward. Today the reward
enters a loss, with the log-probability of the action from `torch.distributions`.

## Fails

```python
import torch

chances = torch.tensor([0.5, 0.5])
action = chances.multinomial(1)
action.reinforce(1.0)  # rejected_here
```

## Fixed

```python
import torch

scores = torch.tensor([0.0, 0.0], requires_grad=True)
choice = torch.distributions.Categorical(logits=scores)
action = choice.sample()
(-choice.log_prob(action) * 1.0).backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "reinforce-removed",
    ("rejected_here",),
    "`reinforce()` was removed from PyTorch",
    "a sampled tensor no longer knows the distribution that it came from",
    "put the reward into a loss: `-dist.log_prob(action) * reward`, with `torch.distributions`",
)

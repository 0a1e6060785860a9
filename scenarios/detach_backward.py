"""Backward through a detached tensor

The sum of a detached tensor has no history to walk back along, so there is nothing for backward to do, and PyTorch says
so. The script ends in that error.

Article: What detach() does to backward, in four examples (in Chinese), part 3
"""

import torch

a = torch.tensor([1.2, 3.4, 5.6], requires_grad=True)
out = a.sigmoid()
c = out.detach()
#: out.requires_grad and out.grad_fn is not None
#: not c.requires_grad and c.grad_fn is None
#: a.grad is None
c.sum().backward()
#: [004-6] holds: raises RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn

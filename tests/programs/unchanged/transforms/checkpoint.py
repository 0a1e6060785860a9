import torch
from torch.utils.checkpoint import checkpoint
calls = []
def block(x):
    calls.append(torch.is_grad_enabled())
    return torch.dropout(x.sin(), 0.5, True)
for reentrant in (False, True):
    torch.manual_seed(0)
    x = torch.ones(4, requires_grad=True)
    checkpoint(block, x, use_reentrant=reentrant).sum().backward()
    print(reentrant, calls, x.grad)

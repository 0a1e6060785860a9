"""What a fresh tensor says of itself

A tensor of floats has dtype float32 unless the call says otherwise, does not require grad and has no gradient.
`item()` returns the value of a tensor with one element as a Python number; with more elements it raises an error.

Article: The difference between requires_grad_(), detach() and torch.no_grad() (in Chinese), part 1
"""

import torch

a = torch.tensor([1.0])
print(a.data, a.grad, a.requires_grad, a.dtype)
#: a.data.tolist() == [1.0]
#: a.grad is None and not a.requires_grad and a.is_leaf
#: [001-7] holds if its elements are Python floats: a.dtype == torch.float32
#: [001-7] refuted if its elements are integers: torch.tensor([1]).dtype == torch.float32

number = a.item()
#: [001-6] holds: type(number) is float and number == 1.0
#: [001-6] holds: type(torch.tensor([[7]]).item()) is int

try:
    torch.tensor([1.0, 2.0]).item()
except RuntimeError as error:
    refusal = str(error)
#: "cannot be converted to Scalar" in refusal

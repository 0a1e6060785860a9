"""Filling a leaf in place

While gradients are recorded, a leaf that requires grad must keep its values. To initialise one, write to its memory
where nothing is recorded: through `.data`, or under `no_grad`, which also keeps the version counter honest.

Article: detach, data, clone and copy_ compared (in Chinese), part 5
"""

import torch

weight = torch.ones(2, 3, requires_grad=True)
try:
    weight.zero_()
except RuntimeError as error:
    refusal = str(error)
#: [000-16] holds if gradients are being recorded: "a leaf Variable that requires grad" in refusal
#: weight.tolist() == [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

weight.data.zero_()
#: [000-17] holds: weight.count_nonzero() == 0 and weight.is_leaf and weight.requires_grad
#: weight._version == 0

with torch.no_grad():
    weight.fill_(0.5)
#: [000-16] refuted if gradients are not being recorded: not weight.eq(0.5).all()
#: weight.is_leaf and weight.requires_grad and weight._version == 1

(weight * 2).sum().backward()
print(weight, weight.grad)
#: weight.grad.tolist() == [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]

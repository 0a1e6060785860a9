"""Starting one network from another's parameters

Momentum contrast keeps a second network that begins as a copy of the first and then follows it slowly. Its parameters
are leaves, so a plain `copy_` is refused. Copying through `.data` works; so does copying under `no_grad`, and so does
`load_state_dict`. The momentum update is a change in place too, and belongs under `no_grad`.

Article: detach, data, clone and copy_ compared (in Chinese), part 6
"""

import torch
from torch import nn

torch.manual_seed(0)
query = nn.Linear(3, 2)
key = nn.Linear(3, 2)
#: [000-19] holds: all(p.is_leaf and p.requires_grad for p in [*query.parameters(), *key.parameters()])
worked = []

A, B = key.weight, query.weight
try:
    A.copy_(B)
    worked.append("A.copy_(B)")
except RuntimeError as error:
    refusal = str(error)
#: "a leaf Variable that requires grad" in refusal

A.data.copy_(B.data)
if torch.equal(A, B):
    worked.append("A.data.copy_(B.data)")

nn.init.zeros_(A)
with torch.no_grad():
    A.copy_(B)
if torch.equal(A, B):
    worked.append("no_grad: A.copy_(B)")

nn.init.zeros_(A)
key.load_state_dict(query.state_dict())
if torch.equal(A, B):
    worked.append("load_state_dict")
print(*worked, sep="\n")
#: [000-18] refuted: worked == ["A.data.copy_(B.data)"]

before, m = A.detach().clone(), 0.9
with torch.no_grad():
    B.add_(1)  # as if the first network had been trained
    A.mul_(m).add_(B, alpha=1 - m)  # k = m * k + (1 - m) * q
#: A.allclose(m * before + (1 - m) * B) and A.allclose(before + 0.1)
#: A.data_ptr() != B.data_ptr() and A.is_leaf and A.requires_grad and A.grad is None

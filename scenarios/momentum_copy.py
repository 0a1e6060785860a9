"""Starting one network from another's parameters

Momentum contrast keeps a second network that begins as a copy of the first. Its parameters are leaves, so a plain
`copy_` is refused. Copying through `.data` works; so does copying under `no_grad`, and so does `load_state_dict`.

Article: 000, part 6
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
#: A.data_ptr() != B.data_ptr() and A.is_leaf and A.requires_grad

"""copy_(): the values move, the gradient comes back

`copy_` fills existing memory with another tensor's values and is recorded like any other operation, so the gradient
flows to the source. The source may have another dtype, another device, or any shape that broadcasts.

Article: detach, data, clone and copy_ compared (in Chinese), part 3
"""

import torch

a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
b = torch.empty_like(a).copy_(a)
#: [000-14] holds: b.data_ptr() != a.data_ptr() and b.tolist() == a.tolist()
#: not b.is_leaf and "CopyBackwards" in b.grad_fn.name()

c = a * 2
c.sum().backward()
d = b * 3
d.sum().backward()
#: [000-14] holds: a.grad.tolist() == [5.0, 5.0, 5.0]

b.retain_grad()
d = b * 3
d.sum().backward()
print("a.grad", a.grad)
print("b.grad", b.grad)
#: b.grad.tolist() == [3.0, 3.0, 3.0] and a.grad.tolist() == [8.0, 8.0, 8.0]

rows = torch.zeros(2, 3).copy_(a)  # one row becomes two
#: [000-13] holds: rows.tolist() == [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
whole = torch.zeros(3, dtype=torch.int64).copy_(torch.tensor([1.5, 2.5, 3.5]))
#: [000-13] holds: whole.dtype == torch.int64 and whole.tolist() == [1, 2, 3]
elsewhere = torch.empty(3, device="meta").copy_(a)
#: [000-13] holds: elsewhere.device.type == "meta" and a.device.type == "cpu"

try:
    torch.zeros(2).copy_(a)
except RuntimeError as error:
    refusal = str(error)
#: "must match" in refusal

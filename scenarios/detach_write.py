"""Writing a detached tensor, then backward

The sigmoid's graph node kept `out` for its formula. Zeroing the detached alias zeroes `out` too and advances the
version counter that they share, so backward finds version 1 where it saved version 0, and refuses. The script ends in
that error.

Article: What detach() does to backward, in four examples (in Chinese), part 4
"""

import torch

a = torch.tensor([1.2, 3.4, 5.6], requires_grad=True)
out = a.sigmoid()
c = out.detach()
#: c._version == out._version == 0
c.zero_()
print("c", c)
print("out", out)
#: [004-7] holds: c.tolist() == out.tolist() == [0.0, 0.0, 0.0]
#: c._version == out._version == 1
out.sum().backward()
#: [004-7] holds: raises RuntimeError: is at version 1; expected version 0 instead
#: [000-3] holds if backward reads an overwritten value: raises RuntimeError: modified by an inplace operation

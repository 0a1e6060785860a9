"""clone().detach() and detach().clone(): one result, two amounts of work

Both give a tensor with the source's values, memory of its own and no history. Cloning first records a graph node that
detaching then throws away; detaching first leaves nothing to record. Where nothing is recorded the two do the same.

Article: detach, data, clone and copy_ compared (in Chinese), part 4
"""

import torch

a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

cloned = a.clone()
b = cloned.detach()

detached = a.detach()
c = detached.clone()

for copy in (b, c):
    print(copy, copy.requires_grad, copy.grad_fn)
    #: [000-25] holds: copy.tolist() == a.tolist() and copy.data_ptr() != a.data_ptr()
    #: [000-25] holds: copy.is_leaf and not copy.requires_grad and copy.grad_fn is None


def nodes(*results):
    """How many of these results have a node in the graph."""
    return sum(result.grad_fn is not None for result in results)


#: [000-15] holds if the clone is recorded: nodes(detached, c) < nodes(cloned, b)

b[0] = 9.0
b.requires_grad = True
(b * 2).sum().backward()
#: [000-25] holds: a.tolist() == c.tolist() == [1.0, 2.0, 3.0]
#: [000-25] holds: b.grad.tolist() == [2.0, 2.0, 2.0] and a.grad is None

with torch.no_grad():
    cloned = a.clone()
    b = cloned.detach()
    detached = a.detach()
    c = detached.clone()
#: [000-15] refuted if the clone is not recorded: nodes(detached, c) < nodes(cloned, b)

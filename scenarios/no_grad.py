"""no_grad(): computing without recording

What is computed inside does not require grad and leaves nothing for a backward pass; outside, the same line records.
Memory is saved where the graph would keep results alive that nobody else needs: `exp` keeps its result, a product with
a number keeps nothing. Whatever requires grad without need costs backward the work for a gradient that nobody reads.

Article: The difference between requires_grad_(), detach() and torch.no_grad() (in Chinese), part 4

In the saved article the first computation reads `n`, a name that is defined nowhere; the script here has `a` instead.
"""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.flop_counter import FlopCounterMode

a = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.no_grad():
    b = a.pow(2).sum()
c = a.pow(2).sum()
#: [001-4] holds: not b.requires_grad and b.grad_fn is None
#: [001-4] holds: c.requires_grad and c.grad_fn is not None


def kept(step):
    """The bytes of five results on the way that are still allocated when only their sum has a name."""
    made = []
    x = torch.zeros(1000, requires_grad=True)
    for _ in range(5):
        x = step(x)
        made.append((x.nbytes, StorageWeakRef(x.untyped_storage())))  # which does not keep it alive
    x = x.sum()  # the graph, if there is one, lives as long as this sum
    return sum(size for size, storage in made if not storage.expired())


outside, plain = kept(torch.exp), kept(lambda x: x * 2)
with torch.no_grad():
    inside = kept(torch.exp)
print("bytes kept:", outside, "inside no_grad:", inside, "by products:", plain)
#: [001-5] holds if the graph keeps alive what would be freed: inside == 0 and outside == 20000
#: [001-5] refuted if the graph keeps nothing alive that would be freed: inside < plain

w = torch.ones(3, 2, requires_grad=True)
work = []
for needless in (False, True):
    w.grad = None
    x = torch.ones(4, 3, requires_grad=needless)
    with FlopCounterMode(display=False) as counter:
        (x @ w).sum().backward()
    work.append(counter.get_total_flops())
#: [001-8] holds: work[0] < work[1] and x.grad.nbytes == 48

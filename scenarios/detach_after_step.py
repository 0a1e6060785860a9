"""Detaching after an optimizer step

The gradient of a sum is one everywhere, so a step of 0.1 takes a tensor of ones to 0.9 in every element, whatever `x`
was. Writing the detached tensor writes the parameter too, and no gradient computed before; a step writes both. A
training loop needs no detach to stay small: its graph grows only if a value with history is carried on.

Article: clone(), detach() and what belongs with them (in Chinese), part 2

The article prints differing elements for `y`; the script as given cannot produce them.
"""

import torch

torch.manual_seed(0)
x = torch.rand(2, 3)
parameter = y = torch.ones(2, 3, requires_grad=True)
optimizer = torch.optim.SGD([y], lr=0.1)
(x + y).sum().backward()
optimizer.step()

y = y.detach()
print(y)
#: [002-5] refuted: y.unique().numel() > 1
#: y.allclose(torch.tensor(0.9))
y[0, 0] = 0.5
#: [002-6] holds: parameter[0, 0] == 0.5 and parameter.grad.eq(1).all()
before = y.clone()
optimizer.step()
#: [002-11] refuted: y.equal(before)


def graph_size(tensor):
    seen, waiting = set(), [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [parent for parent, _ in node.next_functions]
    return len(seen)


sizes, carried, total = [], [], 0
for _ in range(4):
    optimizer.zero_grad()
    loss = (x * parameter).square().sum()
    total = total + loss
    sizes.append(graph_size(loss))
    carried.append(graph_size(total))
#: [002-4] refuted if nothing with history outlives a step: sizes[-1] > sizes[0]
#: [002-4] holds if a value with history is carried from step to step: carried[-1] > carried[0]

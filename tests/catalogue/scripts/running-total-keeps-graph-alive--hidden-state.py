import torch

def size(t):
    seen, todo = set(), [t.grad_fn]
    while todo:
        n = todo.pop()
        if n is not None and n not in seen:
            seen.add(n)
            todo += [m for m, _ in n.next_functions]
    return len(seen)

w, h, sizes = torch.ones(3, requires_grad=True), torch.zeros(3), []
for step in range(3):
    h = torch.tanh(w * h + 1)  # role: graph_built_here, shared_here
    sizes.append(size(h))
assert sizes[0] < sizes[1] < sizes[2]  # role: observed_here
print("silent", sizes)

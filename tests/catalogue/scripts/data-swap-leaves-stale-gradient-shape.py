import torch
w = torch.ones(3, requires_grad=True)
loss = (w * 2).sum()  # role: graph_built_here
w.data = torch.ones(4)  # role: modified_here
loss.backward()  # role: needed_here
assert w.shape == (4,) and w.grad.shape == (3,)  # role: observed_here
print("silent", tuple(w.shape), "and w.grad", tuple(w.grad.shape))

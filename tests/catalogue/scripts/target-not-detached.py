import torch
w = torch.tensor(2.0, requires_grad=True)  # role: leaf_made_here
value = lambda s: w * s
loss = (value(1.0) - (1.0 + 0.9 * value(3.0))) ** 2  # role: graph_built_here
loss.backward()  # role: needed_here
semi, = torch.autograd.grad((value(1.0) - (1.0 + 0.9 * value(3.0)).detach()) ** 2, w)
assert not torch.allclose(w.grad, semi) and w.grad * semi < 0  # role: observed_here
print("silent", w.grad.item(), "instead of", semi.item(), "(opposite sign)")

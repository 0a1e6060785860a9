import torch
x = torch.ones(3, requires_grad=True)
h = x * 1
loss = (h * h).sum()  # role: saved_here
h.data.mul_(10)  # role: modified_here
loss.backward()  # role: needed_here
reference = torch.full((3,), 2.0)  # d(x^2)/dx at x = 1
assert not torch.equal(x.grad, reference)  # role: observed_here
print("silent", x.grad.tolist(), "instead of", reference.tolist())

import torch
w = torch.ones(3, requires_grad=True)
loss = (w * w).sum()  # role: saved_here
w.data = torch.full((3,), 5.0)  # role: modified_here
loss.backward()  # role: needed_here
reference = torch.full((3,), 2.0)
assert not torch.equal(w.grad, reference)  # role: observed_here
print("silent", w.grad.tolist(), "instead of", reference.tolist())

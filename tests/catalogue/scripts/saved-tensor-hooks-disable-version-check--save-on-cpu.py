import torch
x = torch.ones(3, requires_grad=True)
h = x * 1
with torch.autograd.graph.save_on_cpu():  # role: mode_entered_here
    loss = (h * h).sum()  # role: saved_here
h.add_(1)  # role: modified_here
loss.backward()  # role: needed_here
reference = torch.full((3,), 2.0)
assert not torch.equal(x.grad, reference)  # role: observed_here
print("silent", x.grad.tolist(), "instead of", reference.tolist())

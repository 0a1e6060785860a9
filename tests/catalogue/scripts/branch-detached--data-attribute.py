import torch
w = torch.tensor(3.0, requires_grad=True)
loss = w * w.data  # role: graph_cut_here
loss.backward()  # role: needed_here
reference = torch.tensor(6.0)
assert not torch.equal(w.grad, reference)  # role: observed_here
print("silent", w.grad.item(), "instead of", reference.item())

import torch
w = torch.ones(3, requires_grad=True)
loss = (w ** 2).sum()
loss.backward(retain_graph=True)
loss.backward()  # role: accumulated_here
reference = 2 * w.detach()
assert not torch.equal(w.grad, reference)  # role: observed_here
print("silent", w.grad.tolist(), "instead of", reference.tolist())

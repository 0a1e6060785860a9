import torch
w = torch.ones(3, requires_grad=True)
for step in range(3):
    loss = (w * 2).sum()
    loss.backward()  # role: accumulated_here
reference, = torch.autograd.grad((w * 2).sum(), w)
assert not torch.equal(w.grad, reference)  # role: observed_here
print("silent", w.grad.tolist(), "instead of", reference.tolist())

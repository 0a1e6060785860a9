import torch
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
loss = (w ** 2).sum()
loss.backward  # role: rejected_here
opt.step()
assert w.grad is None and w.tolist() == [1.0] * 3  # role: observed_here
print("silent", w.grad, "and w did not move")

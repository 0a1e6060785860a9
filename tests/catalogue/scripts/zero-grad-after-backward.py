import torch
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
(w ** 2).sum().backward()  # role: needed_here
opt.zero_grad()  # role: cleared_here
opt.step()
assert w.tolist() == [1.0] * 3  # role: observed_here
print("silent", w.tolist(), "instead of", [0.8] * 3)

import torch
w = torch.ones(3, requires_grad=True)
snapshot = w.detach()  # role: shared_here
snapshot *= 0  # role: modified_here
assert w.tolist() == [0.0] * 3  # role: observed_here
print("silent", w.tolist(), "instead of", [1.0] * 3)

import torch
x = torch.zeros(3)
a = x.numpy()  # role: shared_here
x += 1  # role: modified_here
assert a.tolist() == [1.0] * 3  # role: observed_here
print("silent", a.tolist(), "instead of", [0.0] * 3)

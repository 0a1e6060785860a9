import torch
x = torch.zeros(2, 2)
flat = x.t().reshape(-1)  # role: value_made_here
flat[0] = 9.0  # role: modified_here
assert x.sum().item() == 0.0  # role: observed_here
print("silent", x.tolist())

import torch
x = torch.zeros(3, 2)
x[[0, 1]][0] = 9.0  # role: value_made_here, modified_here
changed = x.sum().item()
assert changed == 0.0  # role: observed_here
print("silent", x.tolist())

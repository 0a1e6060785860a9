import torch
row = torch.zeros(3)
grid = row.expand(2, 3)  # role: shared_here
row.fill_(7)  # role: modified_here
assert grid.tolist() == [[7.0] * 3] * 2  # role: observed_here
print("silent", grid.tolist())

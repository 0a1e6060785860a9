import torch
x = torch.zeros(3)
picked = x[torch.tensor([True, False, True])]  # role: value_made_here
picked.fill_(5)  # role: modified_here
assert x.tolist() == [0.0] * 3  # role: observed_here
print("silent", x.tolist(), "instead of [5.0, 0.0, 5.0]")

import torch
buffer = torch.zeros(4)
first = buffer[:2]  # role: shared_here
buffer += 1  # role: modified_here
assert first.tolist() == [1.0, 1.0]  # role: observed_here
print("silent", first.tolist(), "instead of [0.0, 0.0]")

import torch
state, history = torch.zeros(1), []
for step in range(3):
    state += 1  # role: modified_here
    history.append(state)  # role: shared_here
values = [h.item() for h in history]
assert values == [3.0, 3.0, 3.0]  # role: observed_here
print("silent", values, "instead of [1.0, 2.0, 3.0]")

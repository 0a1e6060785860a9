import torch
w = torch.ones(1, requires_grad=True)
history = []
for k in range(3):
    (w * (k + 1)).sum().backward()  # role: accumulated_here
    history.append(w.grad)
values = [g.item() for g in history]
assert values == [6.0, 6.0, 6.0]  # role: observed_here
print("silent", values, "instead of [1.0, 3.0, 6.0]")

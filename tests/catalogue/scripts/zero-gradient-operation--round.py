import torch
w = torch.tensor([1.4, 2.6], requires_grad=True)
loss = (w.round() - 5.0).pow(2).sum()  # role: graph_built_here
loss.backward()  # role: needed_here
assert w.grad.tolist() == [0.0, 0.0]  # role: observed_here
print("silent", w.grad.tolist(), "although the loss is", loss.item())

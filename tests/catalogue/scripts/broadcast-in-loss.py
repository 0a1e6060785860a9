import torch
pred = torch.tensor([[0.0], [1.0]], requires_grad=True)
target = torch.tensor([0.0, 1.0])  # role: value_made_here
loss = ((pred - target) ** 2).mean()  # role: graph_built_here
loss.backward()  # role: needed_here
reference = torch.zeros(2, 1)  # the predictions are already perfect
assert not torch.equal(pred.grad, reference)  # role: observed_here
print("silent", pred.grad.tolist(), "instead of", reference.tolist())

import torch, numpy as np
a = np.ones(3, dtype=np.float32)
batch = torch.from_numpy(a)
w = torch.ones(3, requires_grad=True)
loss = (w * batch).sum()  # role: saved_here
a *= 5  # role: modified_here
loss.backward()  # role: needed_here
reference = torch.ones(3)
assert not torch.equal(w.grad, reference)  # role: observed_here
print("silent", w.grad.tolist(), "instead of", reference.tolist())

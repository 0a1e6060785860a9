import torch, array
raw = bytearray(array.array("f", [1.0, 1.0, 1.0]).tobytes())
batch = torch.frombuffer(raw, dtype=torch.float32)
w = torch.ones(3, requires_grad=True)
loss = (w * batch).sum()  # role: saved_here
raw[:] = array.array("f", [5.0, 5.0, 5.0]).tobytes()  # role: modified_here
loss.backward()  # role: needed_here
assert w.grad.tolist() == [5.0, 5.0, 5.0]  # role: observed_here
print("silent", w.grad.tolist(), "instead of", [1.0, 1.0, 1.0])

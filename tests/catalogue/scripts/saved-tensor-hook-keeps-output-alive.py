import gc, torch, weakref
x = torch.ones(3, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):  # role: mode_entered_here
    y = x.exp()  # role: saved_here
ref = weakref.ref(y)
del y
gc.collect()
assert ref() is not None  # role: observed_here
print("silent")

import numpy as np, torch
a = np.ones(3)
t = torch.from_numpy(a)
t.add_(1)
print(a, t, np.asarray(t) is a, t.numpy().ctypes.data == a.ctypes.data)
print(np.sin(t), type(np.add(t, 1)), t + torch.as_tensor(a))
d = torch.from_dlpack(t)
d.mul_(2)
print(a, torch.as_tensor(a).data_ptr() == t.data_ptr(), np.from_dlpack(t))
ro = np.ones(2); ro.flags.writeable = False
torch.from_numpy(ro)

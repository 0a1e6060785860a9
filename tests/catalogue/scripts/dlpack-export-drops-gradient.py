import torch
from torch.utils.dlpack import from_dlpack, to_dlpack
w = torch.ones(3, requires_grad=True)
h = w * 2
back = from_dlpack(to_dlpack(h))  # role: graph_cut_here
assert not back.requires_grad and back.data_ptr() == h.data_ptr()  # role: observed_here
print("silent", back.requires_grad, "but the memory is shared")

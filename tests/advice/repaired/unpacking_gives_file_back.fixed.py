# expect: unpack-hook-returned-non-tensor
"""Activations are put on disk by a small class; one branch of its unpacking gives the file back."""
import io
import torch
from torch import nn


class Disk:
    def pack(self, tensor):
        if tensor.numel() < 4:
            return tensor
        file = io.BytesIO()
        torch.save(tensor, file)
        return file

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        packed.seek(0)
        return torch.load(packed)


disk = Disk()
net = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 1))
with torch.autograd.graph.saved_tensors_hooks(disk.pack, disk.unpack):  # role: mode_entered_here
    loss = net(torch.randn(5, 4)).square().mean()
loss.backward()  # role: needed_here

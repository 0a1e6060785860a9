import numpy as np
import torch


def export_flat(model):
    parts = [p.detach().numpy().ravel() for p in model.parameters()]
    return np.concatenate(parts)


def import_flat(model, flat):
    offset = 0
    for p in model.parameters():
        n = p.numel()
        chunk = flat[offset : offset + n].reshape(tuple(p.shape))
        p.data = torch.from_numpy(chunk.copy())
        offset += n
    if offset != flat.size:
        raise ValueError(f"expected {flat.size} values, used {offset}")

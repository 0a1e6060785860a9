from contextlib import contextmanager

import torch


@contextmanager
def frozen(*nets):
    params = (p for net in nets for p in net.parameters())
    for p in params:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in params:
            p.requires_grad_(True)


class ImagePool:
    def __init__(self, size):
        self.size = size
        self.items = []

    def query(self, images):
        out = []
        for img in images:
            if len(self.items) < self.size:
                self.items.append(img)
                out.append(img)
            elif torch.rand(()).item() < 0.5:
                k = int(torch.randint(0, self.size, ()))
                out.append(self.items[k])
                self.items[k] = img
            else:
                out.append(img)
        return torch.stack(out)

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

import gc
import weakref


class Box:
    def __init__(self, tensor):
        self.tensor = tensor.detach()


def alive_saved(steps, *edits):
    ns = run("deferred_metrics", *edits, as_main=False)
    boxes = weakref.WeakSet()

    def pack(tensor):
        box = Box(tensor)
        boxes.add(box)
        return box

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
        import contextlib
        import io

        with contextlib.redirect_stdout(io.StringIO()):
            model, log = ns["main"](steps)
    gc.collect()
    return len(boxes), sum(b.tensor.numel() * 4 for b in boxes), log


few, few_bytes, _ = alive_saved(10)
many, many_bytes, log = alive_saved(40)
assert many >= 3.9 * few > 0 and many_bytes > 3.9 * few_bytes, "kept activations grow with every step"
fixed, _, _ = alive_saved(40, ("probe = model(x_probe)", "probe = model(x_probe).detach()"))
assert fixed == 0
print("proved: deferred_metrics")

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import gc
import weakref

import torch

name = "river_level"


class Kept:
    def __init__(self, tensor):
        self.tensor = tensor.detach()


def held(*edits):
    """Bytes that autograd still holds in saved tensors (parameters aside) when the program has ended."""
    boxes = []

    def pack(tensor):
        box = Kept(tensor)
        boxes.append(weakref.ref(box))
        return box

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
        result = run(name, *edits)
    gc.collect()
    owned = {p.data_ptr() for p in result["model"].parameters()}
    alive = {}
    for ref in boxes:
        box = ref()
        if box is not None and box.tensor.data_ptr() not in owned:
            storage = box.tensor.untyped_storage()
            alive[storage.data_ptr()] = storage.nbytes()
    return sum(alive.values()), result


repair = ("    forecast = model(past)\n", "    with torch.no_grad():\n        forecast = model(past)\n")
few, _ = held(("EPOCHS, BATCH = 8, 64", "EPOCHS, BATCH = 3, 64"))
many, as_written = held()
fixed, repaired = held(repair)
print(few, many, fixed)
assert all(c.grad_fn is not None for c in as_written["log"].curves)
assert many > 2.2 * few > 0  # grows with each epoch
assert fixed == 0
curves = sum(c.numel() * c.element_size() for c in as_written["log"].curves)
assert many > 100 * curves
assert rel(flat(as_written["model"]), flat(repaired["model"])) == 0  # the training itself is the same

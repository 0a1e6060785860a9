import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import gc
import weakref

import torch

NAME = "ripple_sampler"
REPAIR = ("(1 - self.memory) * losses", "(1 - self.memory) * losses.detach()")


class Box:
    def __init__(self, tensor):
        self.tensor = tensor.detach()


def nodes(tensor):
    seen, todo = set(), [tensor.grad_fn] if tensor.grad_fn is not None else []
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo.extend(n for n, _ in node.next_functions)
    return len(seen)


def measure(epochs, *edits):
    live = weakref.WeakSet()

    def pack(tensor):
        box = Box(tensor)
        live.add(box)
        return box

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
        space = run(NAME, ("EPOCHS = 12", f"EPOCHS = {epochs}"), *edits)
    gc.collect()
    space.pop("loss", None)
    held = {b.tensor.untyped_storage().data_ptr(): b.tensor.untyped_storage().nbytes() for b in live}
    return space, nodes(space["sampler"].scores), sum(held.values())


space, short_nodes, short_bytes = measure(3)
assert space["sampler"].scores.requires_grad
space, long_nodes, long_bytes = measure(12)
print("as written, 3 and 12 epochs: nodes", short_nodes, long_nodes, "bytes", short_bytes, long_bytes)
assert long_nodes > 3 * short_nodes and long_bytes > 3 * short_bytes and long_bytes > 5_000_000
fixed, fixed_nodes, fixed_bytes = measure(12, REPAIR)
print("repaired: nodes", fixed_nodes, "bytes", fixed_bytes)
assert not fixed["sampler"].scores.requires_grad and fixed_nodes == 0 and fixed_bytes < 100_000
assert rel(flat(space["model"]), flat(fixed["model"])) < 1e-6

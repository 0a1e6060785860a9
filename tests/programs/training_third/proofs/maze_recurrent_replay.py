import os, sys, gc, weakref
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat
N = "maze_recurrent_replay"
class Box:
    def __init__(self, t):
        self.t = t
def alive(total, *edits):
    boxes = weakref.WeakSet()
    def pack(t):
        b = Box(t)
        boxes.add(b)
        return b
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda b: b.t):
        r = run(N, ("total=300", f"total={total}"), *edits)
    gc.collect()
    return len(boxes), flat(r["agent"].net)
fix = ("    def act(self", "    @torch.no_grad()\n    def act(self")
a, _ = alive(100)
b, w1 = alive(200)
c, w2 = alive(200, fix)
assert b > 1.8 * a > 500 and c == 0, (a, b, c)
assert torch.equal(w1, w2)
print(f"proved: {N}")

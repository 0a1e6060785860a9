import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
FIX = ("out[dst] += messages", "out = out.index_add(0, dst, messages)")
wrong, fixed = run("sycamore_papers"), run("sycamore_papers", FIX)


def against_dense(g):
    x, (src, dst), conv = g["x"], g["edge_index"], g["model"].conv1
    a = torch.zeros(len(x), len(x))
    a[dst, src] = 1.0
    d = a.sum(1).rsqrt()
    dense = (d[:, None] * a * d[None]) @ x @ conv.weight + conv.bias
    return rel(conv(x, g["edge_index"]), dense)


w, f = against_dense(wrong), against_dense(fixed)
print(w, f, wrong["test_acc"], fixed["test_acc"])
assert w > 0.3 and f < 1e-4
assert fixed["test_acc"] > wrong["test_acc"] + 0.08

import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run


def nodes(t):
    seen, todo = set(), [t.grad_fn] if t.grad_fn is not None else []
    while todo:
        f = todo.pop()
        if f is None or f in seen:
            continue
        seen.add(f)
        todo += [n for n, _ in f.next_functions]
    return len(seen)


size = [nodes(run("trend_monitor", ("epochs=6", f"epochs={e}"))["monitor"].meters["loss"].value) for e in (1, 2, 4)]
fixed = nodes(run("trend_monitor", ("self.meters[k].add(v)", "self.meters[k].add(v.detach())"))["monitor"].meters["loss"].value)
assert size[0] > 100 and size[1] > 1.8 * size[0] and size[2] > 1.8 * size[1] and fixed == 0, (size, fixed)
print("proved: trend_monitor")

import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, run


def kept(edits):
    r = run("churn_monitor", *edits)
    seen, todo, size = set(), [v.grad_fn for v in r["trainer"].val_curve if v.grad_fn is not None], 0
    while todo:
        fn = todo.pop()
        if fn in seen:
            continue
        seen.add(fn)
        if type(fn).__name__ == "TanhBackward0":
            size += fn._saved_result.numel()
        todo += [f for f, _ in fn.next_functions if f is not None]
    return r, len(seen), size


a, nodes, size = kept([])
b, fixed_nodes, fixed_size = kept([("losses).mean())", "losses).mean().detach())")])
assert torch.equal(flat(a["trainer"].model), flat(b["trainer"].model))
epochs = len(a["trainer"].val_curve)
assert epochs >= 8 and size >= epochs * 192 * 64 and nodes > epochs * 10, (epochs, size, nodes)
assert fixed_nodes == 0 and fixed_size == 0
print("proved: churn_monitor")

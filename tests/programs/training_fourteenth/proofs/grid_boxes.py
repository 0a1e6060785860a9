import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("grid_boxes")
good = run("grid_boxes", ("out.view(x.shape[0], GRID, GRID, NUM_A, NUM_V)",
                          "out.permute(0, 2, 3, 1).reshape(x.shape[0], GRID, GRID, NUM_A, NUM_V)"))
print("AP", bad["val_ap"], "->", good["val_ap"], " offset error", bad["val_err"], "->", good["val_err"])


def cells_read(r):
    """Cells of the head's map that the five values of output cell (2, 3), anchor 0 come from."""
    m = r["model"].eval()
    seen = {}
    hook = m.head.register_forward_hook(lambda mod, i, o: seen.update(o=o) or o.retain_grad())
    m(r["val_x"][:1])[0, 2, 3, 0].sum().backward()
    hook.remove()
    return [tuple(t.tolist()) for t in seen["o"].grad[0].nonzero()]


b, g = cells_read(bad), cells_read(good)
print("bad reads (channel, row, col)", b, "repaired", g)
assert len({(y, x) for _, y, x in b}) == 5 and (2, 3) not in {(y, x) for _, y, x in b}
assert {(y, x) for _, y, x in g} == {(2, 3)}
assert good["val_ap"] > bad["val_ap"] + 0.15

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

# poly_lr gives every group the backbone's rate, so the head never gets its HEAD_MULT.
spy = ("    loss.backward()\n    optimizer.step()\n", "    loss.backward()\n    optimizer.step()\n    seen.append([g['lr'] for g in optimizer.param_groups])\n")
fix = ("    for group in optimizer.param_groups:\n        group[\"lr\"] = lr\n",
       "    optimizer.param_groups[0][\"lr\"] = lr\n    optimizer.param_groups[1][\"lr\"] = lr * HEAD_MULT\n")
out = []
for edits in ([spy], [spy, fix]):
    seen = []
    r = run("organ_slices", *edits, inject={"seen": seen})
    ratio = [b / a for a, b in seen]
    out.append((min(ratio), max(ratio), r["mean_iou"](r["net"], r["test_x"], r["test_y"])))
print(out)
assert out[0][1] < 1.0001 and out[1][0] > 19.9
assert out[1][2] > out[0][2] + 0.1

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
fix = ("    loss.backward()\n", "    optimizer.zero_grad()\n    loss.backward()\n")
for s in (5, 6):
    seed = ("manual_seed(5)", f"manual_seed({s})")
    a, b = run("spiral_energy", seed), run("spiral_energy", seed, fix)
    print("precision", a["precision"], b["precision"], "recall", a["recall"], b["recall"], "gap", a["gap"], b["gap"], "contrast", a["contrast"].item(), b["contrast"].item())
    assert b["precision"] > a["precision"] + 0.2 and b["recall"] > a["recall"] + 0.3 and a["contrast"].item() > 50 and abs(b["contrast"].item()) < 1
# norm of what sits in .grad right before the loss's own backward
probe = ("    loss.backward()\n", "    left = [p.grad.norm().item() for p in energy.parameters() if p.grad is not None]\n    loss.backward()\n")
left = run("spiral_energy", probe, ("220, 128", "3, 128"))["left"]
print("left in .grad before backward", left)
assert max(left) > 10

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat_grad

bad = run("chirp_direction", capture=("main",))
good = run("chirp_direction", ("filter(lambda p: p.requires_grad, model.parameters())",
                               "[p for p in model.parameters() if p.requires_grad]"))
left = list(bad.locals["main"]["trainable"])
print("parameters left for the clipping", len(left))
print("last gradient norm", flat_grad(bad["model"]).norm().item(), flat_grad(good["model"]).norm().item())
print("loss", bad["history"], good["history"])
print("accuracy", bad["test_acc"], good["test_acc"])
assert left == []
assert flat_grad(bad["model"]).norm() > 0.55 or max(bad["history"]) > 1.05
assert good["test_acc"] - bad["test_acc"] > 0.08

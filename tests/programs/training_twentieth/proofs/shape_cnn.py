import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer

bad = run("shape_cnn")
opt_line = "optimizer = torch.optim.SGD(net.parameters(), lr=LR, momentum=0.9)\n"
init_line = "net.apply(he_init)\n"
good = run("shape_cnn", (opt_line + init_line, init_line + opt_line))
weights = [m.weight for m in (bad["net"].conv1, bad["net"].conv2, bad["net"].fc1, bad["net"].fc2)]
held = [in_optimizer(w, bad["optimizer"]) for w in weights]
print("weights held by the optimizer:", held)
print("accuracy", bad["final_acc"], "repaired", good["final_acc"])
assert not any(held)
assert all(in_optimizer(p, good["optimizer"]) for p in good["net"].parameters())
assert good["final_acc"] > bad["final_acc"] + 0.05

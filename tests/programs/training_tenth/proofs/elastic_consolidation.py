import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

NAME = "elastic_consolidation"
spy = ("    return total / len(x)", "    probe.append(ewc.penalty(model).item())\n    return total / len(x)")
fix = ("{name: p.detach() for name, p in", "{name: p.detach().clone() for name, p in")
bad_probe, good_probe = [], []
bad = run(NAME, spy, inject={"probe": bad_probe})
good = run(NAME, spy, fix, inject={"probe": good_probe})
print("penalty after each task", bad_probe, good_probe)
for name, p in bad["model"].named_parameters():
    assert bad["ewc"].anchor[name].data_ptr() == p.data_ptr()
assert all(v == 0.0 for v in bad_probe), "penalty is exactly zero through all tasks"
assert all(v > 0.0 for v in good_probe[1:])
print("accuracies", bad["scores"], good["scores"])
mean = lambda s: sum(s) / len(s)
assert mean(good["scores"]) > mean(bad["scores"]) + 0.05

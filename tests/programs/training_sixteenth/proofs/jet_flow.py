import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("jet_flow")
good = run("jet_flow", ("self.order = torch.randperm(dim)", 'self.register_buffer("order", torch.randperm(dim))'))
print(bad.output, good.output)
assert not any("order" in k for k in bad["flow"].state_dict())
assert any((a.order != b.order).any() for a, b in zip(bad["flow"].steps[1::2], bad["final"].steps[1::2]))
trained = bad["evaluate"](bad["flow"], bad["test_x"])
print("trained model", trained, "loaded", bad["test_nll"], "loaded after repair", good["test_nll"])
assert abs(bad["best"] - good["best"]) < 1e-4
assert abs(good["test_nll"] - good["best"]) < 0.3
assert bad["test_nll"] > trained + 2

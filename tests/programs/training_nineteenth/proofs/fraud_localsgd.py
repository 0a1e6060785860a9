import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("fraud_localsgd")
good = run("fraud_localsgd", ("p.data = mean", "p.data.copy_(mean)"))
ptrs = lambda r: {next(w.model.parameters()).data_ptr() for w in r["workers"]}
print(len(ptrs(bad)), len(ptrs(good)), bad["drifts"][:3], good["drifts"][:3], bad["final_loss"], good["final_loss"], bad["final_acc"], good["final_acc"])
assert len(ptrs(bad)) == 1 and len(ptrs(good)) == 4
assert bad["drifts"][0] > 0 and max(bad["drifts"][1:]) == 0 and min(good["drifts"]) > 0
assert abs(bad["final_loss"] - good["final_loss"]) > 0.03

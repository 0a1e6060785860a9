import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run


def facts(r):
    val = r["evaluate"](r["model"], r["x"], r["adj"], r["val_e"], r["val_neg"])
    shared = all(v.data_ptr() == r["model"].state_dict()[k].data_ptr() for k, v in r["best_state"].items())
    return shared, val, r["best_auc"], r["val_history"][-1], r["best_epoch"]


w = facts(run("gcn_link_prediction"))
f = facts(run("gcn_link_prediction", ("best_state = model.state_dict()", "best_state = {k: v.clone() for k, v in model.state_dict().items()}")))
print("wrong", w, "fixed", f)
assert w[0] and not f[0]
assert w[4] < 140 and w[1] != w[2] and abs(w[1] - w[3]) < 1e-6  # restored = last, not best
assert abs(f[1] - f[2]) < 1e-6

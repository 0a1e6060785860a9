import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

FIX = ("reference = server_model.parameters()", "reference = list(server_model.parameters())")
COUNT = ("    return 0.5 * total\n", "    SEEN.append(float(total.detach()))\n    return 0.5 * total\n")
ok = []
for seed in (21, 22):
    s = ("manual_seed(21)", f"manual_seed({seed})")
    sb, sg, sz = [], [], []
    bad = run("hospital_prox", s, COUNT, inject={"SEEN": sb})
    good = run("hospital_prox", s, FIX, COUNT, inject={"SEEN": sg})
    zero = run("hospital_prox", s, ("MU = 0.5", "MU = 0.0"), COUNT, inject={"SEEN": sz})
    print(bad.output, good.output)
    print("max proximal term", max(sb), max(sg), "drift", bad["client_drift"], good["client_drift"],
          "loss", bad["test_loss"], good["test_loss"], "with MU=0:", zero["test_loss"])
    ok.append(max(sb) == 0 and max(sg) > 0.01 and bad["client_drift"] > 1.5 * good["client_drift"]
              and bad["test_loss"] == zero["test_loss"] and good["test_loss"] < bad["test_loss"] - 0.03)
sys.exit(0 if all(ok) else 1)

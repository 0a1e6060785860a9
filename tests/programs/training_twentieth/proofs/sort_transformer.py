import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("sort_transformer")
good = run("sort_transformer", ("lr=1e-3, betas", "lr=1.0, betas"))
print(bad.output, good.output)
for r in (bad, good):
    print("last rate", r["optimizer"].param_groups[0]["lr"], "noam", r["noam_rate"](r["STEPS"]))
# LambdaLR multiplies the base rate: the rate used is 1000 times below the paper's
ratio = bad["optimizer"].param_groups[0]["lr"] / bad["noam_rate"](bad["STEPS"])
assert abs(ratio - 1e-3) < 1e-6
assert abs(good["optimizer"].param_groups[0]["lr"] / good["noam_rate"](good["STEPS"]) - 1) < 1e-6
assert bad["token_acc"] < 0.4 and good["token_acc"] > 0.9

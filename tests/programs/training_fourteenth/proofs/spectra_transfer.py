import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ('1e-2},\n            ])\n', '1e-2},\n            ])\n            sched = LambdaLR(opt, lambda e: decay(e + HEAD_EPOCHS))\n')
sums = [0.0, 0.0]
for seed in (9, 10, 11):
    edit = ("SEED = 9", f"SEED = {seed}")
    bad, good = run("spectra_transfer", edit), run("spectra_transfer", edit, fix)
    print(seed, "rates at the end", bad["rates"][-1], good["rates"][-1], "rmse", bad["rmse"], good["rmse"])
    assert bad["rates"][-1] == bad["rates"][3] == [2e-2, 1e-2]
    assert good["rates"][-1][0] < 3e-3
    sums = [sums[0] + bad["rmse"], sums[1] + good["rmse"]]
print("mean rmse", sums[0] / 3, sums[1] / 3)
assert sums[1] < 0.8 * sums[0]

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("        for group, base in zip(trainer.optimizer.param_groups, self.base_lrs):\n            group[\"lr\"] = base * factor",
       "        for group in trainer.optimizer.param_groups:\n            group[\"lr\"] = group.setdefault(\"base\", group[\"lr\"]) * factor")
fix0 = ("        self.base_lrs = [g[\"lr\"] for g in trainer.optimizer.param_groups]\n",
        "        for g in trainer.optimizer.param_groups:\n            g['base'] = g['lr']\n")
ratios = []
for seed in range(3):
    s = ("torch.manual_seed(0)", f"torch.manual_seed({seed})")
    bad, good = run("spectra_thaw", s), run("spectra_thaw", s, fix, fix0)
    lr_bad = [g["lr"] for g in bad["optimizer"].param_groups]
    lr_good = [g["lr"] for g in good["optimizer"].param_groups]
    a, b = float(bad.output.split()[-1]), float(good.output.split()[-1])
    print(lr_bad, lr_good, a, b)
    assert lr_bad[0] < 1e-3 and lr_bad[1:] == [0.08, 0.05] and max(lr_good) < 1e-3
    ratios.append(a / b)
print(ratios)
assert min(ratios) > 1.1

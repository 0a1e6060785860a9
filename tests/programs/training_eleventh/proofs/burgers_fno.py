import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

OLD = "lr=8e-3, weight_decay=1e-4)\nfor epoch"
NEW = ("lr=scheduler.get_last_lr()[0], weight_decay=1e-4)\n"
       "scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=FINE_EPOCHS)\nfor epoch")
bad = run("burgers_fno")
print("printed lr", bad["scheduler"].get_last_lr(), "lr used", [g["lr"] for g in bad["optimizer"].param_groups])
assert bad["scheduler"].get_last_lr()[0] < 1e-5
assert all(g["lr"] == 8e-3 for g in bad["optimizer"].param_groups)
assert bad["scheduler"].optimizer is not bad["optimizer"]
pairs = []
for seed in (21, 22, 23):
    s = ("SEED = 21", f"SEED = {seed}")
    good = run("burgers_fno", s, (OLD, NEW))
    assert good["optimizer"].param_groups[0]["lr"] < 1e-5
    pairs.append((run("burgers_fno", s)["test_error"], good["test_error"]))
print("test errors bad/good", pairs)
assert all(b > 1.2 * g for b, g in pairs)

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

a = run("tenure_history")
b = run("tenure_history", ("summary = states[:, -1]", "summary = states[torch.arange(len(lengths)), lengths - 1]"))
print(a.output, b.output)
history, lengths, static, churned = a["collate"](a["test_set"].rows[:64])
net = a["net"].eval()
short = lengths < lengths.max()
changed = history.clone()
changed[short] += torch.randn_like(changed[short])
with torch.no_grad():
    moved = (net(changed, lengths, static) - net(history, lengths, static)).abs()
print("customers whose logit doesn't depend on their history:", (moved[short] == 0).sum().item(), "of", short.sum().item())
print("test AUC", a["test_auc"], "repaired", b["test_auc"])
sys.exit(0 if (moved[short] == 0).all() and short.sum() > 50 and b["test_auc"] > a["test_auc"] + 0.1 else 1)

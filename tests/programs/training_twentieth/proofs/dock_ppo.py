import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

WATCH = ("            surrogate = ", "            RATIOS.append((ratio.detach() - 1).abs())\n            surrogate = ")
FIX = ("""            with torch.no_grad():
                old_log_prob = pilot.policy(obs[idx]).log_prob(act[idx]).sum(-1)
""", """            old_log_prob = old_all[idx]
"""), ("    for _ in range(EPOCHS):\n", "    with torch.no_grad():\n        old_all = pilot.policy(obs).log_prob(act).sum(-1)\n    for _ in range(EPOCHS):\n")
wrong_ratios, fixed_ratios = [], []
as_is = run("dock_ppo", WATCH, inject={"RATIOS": wrong_ratios})
fixed = run("dock_ppo", WATCH, *FIX, inject={"RATIOS": fixed_ratios})
print(as_is.output, fixed.output)
worst = max(r.max().item() for r in wrong_ratios)
clipped = sum((r > 0.2).float().mean().item() for r in fixed_ratios) / len(fixed_ratios)
mean = lambda s: sum(s[-10:]) / 10
print("largest |ratio-1| as written", worst, " clipped share when repaired", clipped, mean(as_is["scores"]), mean(fixed["scores"]))
assert worst < 1e-5 and clipped > 0.05
assert mean(fixed["scores"]) > mean(as_is["scores"]) + 0.3

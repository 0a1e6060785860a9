import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, rel, flat

FIX = ('state["nu"] = state["nu_max"] = torch.zeros_like(p)', 'state["nu"] = torch.zeros_like(p); state["nu_max"] = torch.zeros_like(p)')
SPY = ("    losses.append(loss.item())\n",
       "    losses.append(loss.item()); seen.append(optimizer.state[model.linear]['nu_max'].clone())\n")
ADAM = ("optimizer = AMSGrad(", "optimizer = torch.optim.AdamW(")
seen_a, seen_b = [], []
a = run("spend_model", SPY, inject={"seen": seen_a})
b = run("spend_model", SPY, FIX, inject={"seen": seen_b})
c = run("spend_model", ADAM)
SHORT = ("range(5000)", "range(200)")
sa, sb, sc = run("spend_model", SHORT), run("spend_model", SHORT, FIX), run("spend_model", ADAM, SHORT)
falls = [sum((y < x).any().item() for x, y in zip(s, s[1:])) for s in (seen_a, seen_b)]
print("steps at which the running maximum falls:", falls)
st = a["optimizer"].state[a["model"].linear]
print("one storage", st["nu"].data_ptr() == st["nu_max"].data_ptr())
da, db = (rel(flat(r["model"]), flat(sc["model"])) for r in (sa, sb))
print("weights against plain AdamW after 200 steps:", da, "repaired", db)
print("rmse", a["rmse"], "repaired", b["rmse"], "AdamW", c["rmse"])
print(a.output, b.output)
assert falls[0] > 500 and falls[1] == 0
assert da < 1e-3 and db > 0.1
assert b["rmse"] < 0.6 * a["rmse"]

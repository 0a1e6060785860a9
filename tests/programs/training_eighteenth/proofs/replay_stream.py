import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

a = run("replay_stream")
line = [l for l in open(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "wrong/replay_stream.py")) if "sched = " in l][0]
head = "    for number, ((x, y), _) in enumerate(tasks):\n"
reset = "        for g in opt.param_groups:\n            g['lr'] = g['initial_lr'] = LR\n        " + line.strip() + "\n"
b = run("replay_stream", (head, head + reset))
print("new-task accuracy", a["table"][-1][-1], b["table"][-1][-1], "mean", a["mean"], b["mean"])
assert abs(a["opt"].param_groups[0]["lr"] - 0.02 * 0.05) < 1e-9     # floor through all of tasks 2 and 3
c = run("replay_stream", ("    table = []\n", "    table = []\n    lrs = []\n"), ("                opt.step()\n", "                opt.step(); lrs.append(opt.param_groups[0]['lr'])\n"), capture=("main",))
lrs = c.locals["main"]["lrs"]
per = len(lrs) // 3
print("mean lr per task", [sum(lrs[i * per:(i + 1) * per]) / per for i in range(3)])
assert max(lrs[per:]) < 0.0011 and max(lrs) == 0.05
assert b["mean"] > a["mean"] + 0.05 and b["table"][-1][-1] > a["table"][-1][-1] + 0.1

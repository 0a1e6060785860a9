import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

load = '            self.optimizer.load_state_dict(state["optimizer"])\n'
save = 'optimizer=self.optimizer.state_dict(), '
fix = ((load, load + '            self.scheduler.load_state_dict(state["scheduler"])\n'),
       (save, save + 'scheduler=self.scheduler.state_dict(), '))
a, b, c = run("night_shift"), run("night_shift", *fix), run("night_shift", ("slot=6", "slot=99"))
for name, r in (("as is", a), ("repaired", b), ("in one job", c)):
    print(name, "final error", r["final_error"], "lr", [round(v, 4) for v in r["job"].history])
assert b["job"].history == c["job"].history != a["job"].history
assert abs(b["final_error"] - c["final_error"]) < 1e-6
assert a["final_error"] > 1.1 * b["final_error"]

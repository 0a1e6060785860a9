import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

a = run("plot_census")
heads = list(a["model"].heads.values())
b = run("plot_census", ('dict.fromkeys(cfg["heads"]["names"], build_head(width, cfg["heads"]))',
                        '{n: build_head(width, cfg["heads"]) for n in cfg["heads"]["names"]}'))
print("one object for all heads:", all(h is heads[0] for h in heads))
print("as is", a["held"], "repaired", b["held"])
assert all(h is heads[0] for h in heads)
assert sum(a["held"].values()) > 1.3 * sum(b["held"].values())

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
b = run("ewc_two_tasks")
g = run("ewc_two_tasks", ("{n: p.data for", "{n: p.detach().clone() for"))
print("kept/new", b["kept"], b["new"], "repaired", g["kept"], g["new"])
assert b["memory"].penalty().item() == 0.0 and g["memory"].penalty().item() > 0
assert all(p.data_ptr() == b["memory"].anchor[n].data_ptr() for n, p in b["model"].named_parameters())
assert g["kept"] > b["kept"] + 0.1 and g["new"] > 0.7

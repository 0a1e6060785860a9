import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel

bad = run("lesion_patches")
good = run("lesion_patches", ("student.state_dict(), assign=True", "{k: v.clone() for k, v in student.state_dict().items()}, assign=True"))
shared = [s.data_ptr() == t.data_ptr() for s, t in zip(bad["student"].parameters(), bad["teacher"].parameters())]
print("storages shared", shared)
gap_bad, gap_good = (rel(flat(r["teacher"]), flat(r["student"])) for r in (bad, good))
print("distance of teacher and student", gap_bad, gap_good)
print("teacher accuracy", bad["teacher_acc"], good["teacher_acc"])
assert all(shared)
assert gap_bad == 0.0 and gap_good > 0.01
assert good["teacher_acc"] - bad["teacher_acc"] > 0.015

import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = [
    ("def save(step, model, optimizer):", "def save(step, model, optimizer, scheduler):"),
    ('"optimizer": optimizer.state_dict(),\n', '"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),\n'),
    ("def load(blob, model, optimizer):", "def load(blob, model, optimizer, scheduler):"),
    ('    torch.set_rng_state(saved["rng"])\n', '    scheduler.load_state_dict(saved["scheduler"])\n    torch.set_rng_state(saved["rng"])\n'),
    ("load(blob, model, optimizer) if", "load(blob, model, optimizer, scheduler) if"),
    ("save(step + 1, model, optimizer), step", "save(step + 1, model, optimizer, scheduler), step"),
]
one_go = ("WARMUP, CHUNK, BATCH = 480, 40, 80, 64", "WARMUP, CHUNK, BATCH = 480, 40, 480, 64")


def end(*edits):
    r = run("fraud_resume", *edits, capture=("main",)).locals["main"]
    return r["lr_log"], r["loss"], r["ap"]


bad, good, whole = end(), end(*fix), end(one_go)
gap = lambda a, b: max(abs(x - y) for x, y in zip(a[0], b[0]))
print("learning rate at the last step: as written", bad[0][-1], "repaired", good[0][-1], "without interruption", whole[0][-1])
print("largest gap to the uninterrupted learning rate:", gap(bad, whole), gap(good, whole))
print("test loss / AP:", bad[1:], good[1:], whole[1:])
ok = gap(bad, whole) > 1e-2 and gap(good, whole) < 1e-9 and abs(good[1] - whole[1]) < 1e-5 and good[1] < bad[1] - 0.01 and good[2] > bad[2]
sys.exit(0 if ok else 1)

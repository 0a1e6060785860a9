import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
import torch.nn.functional as F


def mismatch(r):
    with torch.no_grad():
        return rel(r["teacher_logits"], r["teacher"].eval()(r["train_set"].x))


def held_out(r):
    """KL(teacher || student) and student cross entropy on the test set."""
    t = r.locals["main"]["test_set"]
    with torch.no_grad():
        s, te = r["student"].eval()(t.x), r["teacher"].eval()(t.x)
        kl = F.kl_div(s.log_softmax(-1), te.log_softmax(-1), log_target=True, reduction="batchmean").item()
        return kl, F.cross_entropy(s, t.y).item()


bad = run("heron_tutor", capture=("main",))
good = run("heron_tutor", ("precompute_logits(teacher, train_loader)",
                           "precompute_logits(teacher, DataLoader(train_set, batch_size=256))"), capture=("main",))
print(mismatch(bad), mismatch(good), bad["final"], good["final"], held_out(bad), held_out(good))
print(bad.output, good.output)
assert mismatch(bad) > 0.5      # row i does not hold the teacher's logits for sample i
assert mismatch(good) < 1e-4
(bkl, bce), (gkl, gce) = held_out(bad), held_out(good)
assert bkl > 3 * gkl and bce > gce + 0.3

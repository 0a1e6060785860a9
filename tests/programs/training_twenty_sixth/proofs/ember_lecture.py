import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
grab = ("main", "train_teacher")
bad = run("ember_lecture", capture=grab).locals["main"]
good = run("ember_lecture", ("        distiller.train()\n", "        distiller.student.train()\n"), capture=grab).locals["main"]


def summary(v):
    t = v["teacher"].eval()
    with torch.no_grad():
        t_acc = (t(v["test_x"]).argmax(1) == v["test_y"]).float().mean().item()
    return t.body[0][1].num_batches_tracked.item(), t.body[0][1].running_mean.clone(), t_acc, v["acc"]


(nb, mb, tb, sb), (ng, mg, tg, sg) = summary(bad), summary(good)
print("batches seen by teacher BN", nb, ng, "| running mean moved", rel(mb, mg), "| teacher acc", tb, tg, "| student acc", sb, sg)
assert torch.equal(bad["teacher"].head.weight, good["teacher"].head.weight)
steps_teacher = 6 * len(torch.arange(3000).split(64))
assert ng == steps_teacher and nb > steps_teacher
assert rel(mb, mg) > 0.1
assert tg > tb + 0.01 and sg > sb + 0.01

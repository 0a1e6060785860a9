import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("    distiller.train()\n", "    distiller.train()\n    distiller.teacher.eval()\n")
record = [("teacher.eval()\nprint(", "teacher.eval()\nBEFORE.update({k: v.clone() for k, v in teacher.state_dict().items()})\nprint("),
          ("            teacher_logits = self.teacher(x)\n", "            teacher_logits = self.teacher(x)\n            NOISE.append((self.teacher(x) - self.teacher(x)).abs().max().item())\n")]


def facts(*edits):
    before, noise = {}, []
    r = run("distill_audio_frames", *record, *edits, inject={"BEFORE": before, "NOISE": noise})
    drift = max((r["teacher"].state_dict()[k].float() - v.float()).abs().max().item() for k, v in before.items() if "running" in k)
    return drift, max(noise)


w, f = facts(), facts(fix)
print("(drift of the teacher's statistics, noise of its outputs): wrong", w, "fixed", f)
assert w[0] > 0.05 and w[1] > 0.1 and f == (0.0, 0.0)

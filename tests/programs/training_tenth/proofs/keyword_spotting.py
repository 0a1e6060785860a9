import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

wrong = run("keyword_spotting")
fixed = run("keyword_spotting", ("spectrum = self.spectra[index]", "spectrum = self.spectra[index].clone()"))
zeros = [(r["train_set"].spectra == 0).float().mean().item() for r in (wrong, fixed)]
valid = [r["accuracy"](r["model"], r["valid_loader"]) for r in (wrong, fixed)]
print(zeros, valid)
assert zeros[0] > 0.5 and zeros[1] < 1e-4, "the stored training set is blanked more with every epoch"
assert valid[1] > valid[0] + 0.01

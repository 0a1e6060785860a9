import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

FIX = ("enumerate(ALPHABET)}", "enumerate(ALPHABET, start=1)}")
FIX2 = ("nn.CTCLoss(zero_infinity=True)", "nn.CTCLoss(blank=len(ALPHABET), zero_infinity=True)")
bad, good, other = run("morse_scribe"), run("morse_scribe", FIX), run("morse_scribe", FIX2)
assert bad["ctc"].blank in bad["ID_TO_CHAR"]
count = lambda r, key: sum(t.count("a") for t in r[key])
print("letter a", count(bad, "texts"), count(bad, "hyps"), count(good, "hyps"))
assert count(bad, "texts") > 30 and count(bad, "hyps") == 0 and count(good, "hyps") > 0.8 * count(good, "texts")
print("cer", bad["cer"], good["cer"], other["cer"])
assert bad["cer"] > good["cer"] + 0.08 and bad["cer"] > other["cer"] + 0.08

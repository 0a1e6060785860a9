import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

FIT = ("self.cardinalities = [len(np.unique(table[c])) for c in CATEGORICAL]",
       "self.vocab = {c: np.unique(table[c]) for c in CATEGORICAL}\n"
       "        self.cardinalities = [len(self.vocab[c]) for c in CATEGORICAL]")
USE = ("np.unique(table[c], return_inverse=True)[1] for c", "np.searchsorted(self.vocab[c], table[c]) for c")


def moved(result):
    """Share of test rows whose depot has another code than the same depot has in the training table."""
    known = dict(zip(result["train_table"]["depot"], result["train"][0][:, 0].tolist()))
    pairs = list(zip(result["test_table"]["depot"], result["test"][0][:, 0].tolist()))
    assert all(name in known for name, _ in pairs)
    return sum(known[name] != code for name, code in pairs) / len(pairs)


bad, good = run("parcel_origin"), run("parcel_origin", FIT, USE)
print(moved(bad), moved(good), bad["mae_test"], good["mae_test"], bad["mae_train"], good["mae_train"])
assert moved(good) == 0 and moved(bad) > 0.5
assert abs(bad["mae_train"] - good["mae_train"]) < 1e-6   # the training is the same, only the test rows are mixed up
assert good["mae_test"] < 0.6 * bad["mae_test"]

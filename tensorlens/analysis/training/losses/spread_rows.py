"""Finds out whether a model may keep the rows of its results apart by what it computes from all rows of a batch.

Whitening and standardizing do that: the rows that they return cannot all be the same.
"""

from __future__ import annotations

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.pair_tables import PRODUCTS, made_by, shape_of
from tensorlens.records.model import Call

_DECOMPOSING = frozenset(
    "cholesky cholesky_ex linalg_cholesky cholesky_inverse cholesky_solve solve solve_ex solve_triangular "
    "triangular_solve linalg_solve inv inv_ex inverse linalg_inv pinv pinverse lstsq eigh linalg_eigh eig eigvalsh "
    "svd linalg_svd svdvals qr linalg_qr matrix_power matrix_exp lu_factor cov corrcoef".split()
)
_OF_ALL = frozenset(
    "mean std var var_mean std_mean sum norm vector_norm logsumexp amax amin max min median nanmean cumsum".split()
)
_TURNING = frozenset("t T mT transpose permute swapaxes movedim einsum".split())
_NORMS = frozenset("batch_norm instance_norm".split())
_MOST_CALLS = 400


def may_be_spread(facts: TraceIndex, term: Call) -> bool:
    """Returns whether calls between the last parameters and a term may compute something from all rows."""
    waiting, seen = [(access.tensor, term.index) for access in term.inputs], set[int]()
    for number, before in waiting:
        call = made_by(facts, number, before)
        if call is None or call.index in seen:
            continue
        if len(seen) > _MOST_CALLS:
            return True
        seen.add(call.index)
        given = [access.tensor for access in call.inputs]
        if any(facts.is_leaf_requiring_grad(each, call.index - 1) for each in given):
            continue
        trained = [each for each in given if facts.requires_grad(each, call.index - 1)]
        if trained and _mixes_rows(facts, call, trained):
            return True
        waiting += [(each, call.index) for each in trained]
    return False


def _mixes_rows(facts: TraceIndex, call: Call, trained: list[int]) -> bool:
    name = op_name(call)
    if name in _DECOMPOSING | _NORMS or (name in PRODUCTS and len(set(trained)) > 1) or not call.outputs:
        return True
    if name in PRODUCTS and [access.tensor for access in call.inputs].count(trained[0]) > 1:
        return True
    rows, left = (shape_of(facts, each)[:1] for each in (trained[0], call.outputs[0].tensor))
    return name in ("t", "T") or (name in _OF_ALL | _TURNING and rows != left)

"""Names noisy data of a diffusion model that are mixed by a product of retained shares, and not by its roots.

Of data and noise with a variance of 1, `bar.sqrt() * x + (1 - bar).sqrt() * noise` has that variance, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS, examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.mixed_noise import Mixture, mixture_of, origin
from tensorlens.analysis.training.taken_norms import written_power
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_PRODUCT = "cumprod"
_COMPARING = ERRORS | {"sub", "rsub"}
_MOST_ABOVE = 24


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them by a product that `cumprod()` returns, where a loss compares a result with the noise.

    Data that fade on purpose may be blended with noise, and a model restores the data from the blend.
    """
    facts, reported = training.facts, set[int]()
    if not any(op_name(call) == _PRODUCT for call in facts.calls):
        return
    for call in facts.calls:
        each = None if call.site in reported else mixture_of(facts, call)
        roots = None if each is None else _rooted(facts, each)
        if each is None or roots is None or not _is_target(facts, each.noise):
            continue
        reported.add(call.site)
        both = "only the factor of the data is a root" if roots else "neither is the root of its share"
        yield stands_out(
            f"{as_written(facts, call)} mixes data and noise by a product of shares and 1 minus this product, and "
            f"{both}: the squares of the two factors do not sum to 1, so data and noise of variance 1 give another "
            "variance at each step",
            facts.label("value_made_here", call.site, "mixed here", call.index),
            facts.label("observed_here", each.noise.site, "the noise", each.noise.index),
        )


def _is_target(facts: TraceIndex, noise: Call) -> bool:
    """Returns whether a loss compares a result with noise, or with what it is a part of."""
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) not in _COMPARING:
                continue
            given = [access.tensor for access in call.inputs]
            targets = [number for number in given if not facts.requires_grad(number, call.index - 1)]
            above = (made for number in targets for _, made in ancestry(facts, number, call.index, _MOST_ABOVE))
            if any(made.site == noise.site for made in above):
                return True
    return False


def _rooted(facts: TraceIndex, mixed: Mixture) -> bool | None:
    """Returns whether the factor of the data is a root; None unless that of the noise is 1 minus the same product."""
    if mixed.data_factor is None or mixed.noise_factor is None:
        return None
    _, rest = origin(facts, *mixed.noise_factor)
    if rest is None or op_name(rest) != "rsub" or len(rest.inputs) != 1:
        return None
    product, made = origin(facts, rest.inputs[0].tensor, rest.index)
    kept, kept_by = origin(facts, *mixed.data_factor)
    is_root = kept_by is not None and written_power(facts, kept_by) == 0.5
    if kept_by is not None and is_root:
        kept, _ = origin(facts, kept_by.inputs[0].tensor, kept_by.index)
    return is_root if made is not None and op_name(made) == _PRODUCT and kept == product else None

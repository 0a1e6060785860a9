"""Names masks that come after the mean of a loss, and masks whose zeros are the least of what they leave."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.counted_masks import filled_value
from tensorlens.analysis.training.losses.lost_masks import PRODUCTS, LostMask, lost_masks
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden:
        return
    for each in lost_masks(facts):
        made = facts.label("needed_here", each.other.site, "one number" if each.late else "the least", each.other.index)
        product = facts.label("value_made_here", each.product.site, "multiplied here", each.product.index)
        labels = (made, product) if each.late else (product, made)
        one_line = facts.same_line(each.other.site, each.product.site)
        yield stands_out(_text(training, each), *labels[: 1 if one_line else 2])


def _text(training: MeasuredTraining, each: LostMask) -> str:
    facts = training.facts
    other, mask = as_written(facts, each.other), named(facts, each.mask, each.product.index)
    if each.late:
        shape = facts.tensor(each.mask).shape
        made = {access.tensor for access in each.other.outputs}
        is_itself = any(access.tensor in made for access in each.product.inputs)
        number = "that number" if is_itself else "a number that is computed from it"
        return (
            f"{other} returns one number, and not one for each element: {as_written(facts, each.product)} multiplies "
            f"{number} by {mask} of shape {shape}, not the loss of each element"
        )
    value = None if op_name(each.product) in PRODUCTS else filled_value(facts, each.product)
    if value is not None:
        return (
            f"{other} takes the least of values that {as_written(facts, each.product)} sets to {value:g} by the mask "
            f"{mask}: where there is one, the least is {value:g}, because the other values are never negative"
        )
    return (
        f"{other} takes the least of products with {mask}, which has zeros and ones: where a zero is among them, the "
        "least is 0, because the other factors are never negative"
    )

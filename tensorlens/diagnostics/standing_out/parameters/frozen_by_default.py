"""Names embeddings that an optimizer is given and that `from_pretrained()` has frozen, which is its default."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_at
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_CLASSES = ("Embedding", "EmbeddingBag")


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds parameters that an optimizer holds, that never require grad, and whose line does not write `freeze=`."""
    facts = training.facts
    for row in training.rows:
        made = facts.first_use(row.tensor)
        span = None if made is None else facts.span(made.site)
        if row.group is None or row.requires_grad or row.passes or made is None or span is None:
            continue
        statement = statement_at(facts, span.file, span.line)
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)] if statement is not None else []
        for call in filter(_is_default, calls):
            yield stands_out(
                f"`{row.name}` is given to `{row.group.name}` and never gets a gradient: `from_pretrained()` freezes "
                "it unless `freeze=False` is written",
                Label("leaf_made_here", facts.span_of(call, span.file), "frozen by default"),
                facts.label("optimizer_made_here", row.group.site, "given to the optimizer here"),
            )
            break


def _is_default(call: ast.Call) -> bool:
    """Returns whether a call is `nn.Embedding.from_pretrained(table)` without a word about `freeze`."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "from_pretrained" or len(call.args) != 1:
        return False
    owner = func.value.attr if isinstance(func.value, ast.Attribute) else getattr(func.value, "id", "")
    return owner in _CLASSES and not {"freeze", None} & {keyword.arg for keyword in call.keywords}

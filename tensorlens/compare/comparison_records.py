"""The frozen records of a comparison, and their JSON: what the probing child answers, as the renderers are given it.

`docs/comparison.schema.json` describes the JSON; a test checks real comparisons against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

FORMAT = "tensorlens.comparison"
VERSION = 1

Value = bool | int | float | str | None
Group = Literal["result", "graph", "writing", "cost"]
Level = Literal["basic", "usual", "detail"]  # shown always; where operands differ; only with --all
Layout = Literal["contiguous", "transposed", "every_second", "first_columns"]
Values = Literal["signed", "positive"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one probe measured: a value to compare by, the words to show, and the error if there was one."""

    value: Value
    text: str
    error: str = ""  # "RuntimeError: ...", as PyTorch words it
    code: str = ""  # catalogue code of the error: its page


@dataclass(frozen=True, slots=True)
class Operand:
    """One of the things compared: as the user wrote it, and the code that was run for it."""

    operand: str  # "view"
    call: str  # "x.view(-1)"
    kind: str  # "method", "property", "function", "context", "code", "file"


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor `x` that every operand is applied to."""

    id: str  # "x", "leaf", "no_grad", "transposed", "leaf+view", ...
    label: str  # "a leaf x"
    shape: tuple[int, ...]
    dtype: str
    device: str
    requires_grad: bool
    leaf: bool
    layout: Layout = "contiguous"  # "every_second": as `b[..., ::2]`; "first_columns": as `b[..., :n]` of a wider b
    view: bool = False
    values: Values = "signed"

    @property
    def contiguous(self) -> bool:
        return self.layout == "contiguous"


@dataclass(frozen=True, slots=True)
class Observation:
    """The answer of the row's probe for one operand on one input; both are indices into the comparison's tables."""

    operand: int
    input: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Row:
    """One probe over all operands. `values` are those on the main input; `evidence` has every input measured."""

    probe: str
    label: str
    group: Group
    level: Level
    values: tuple[Value, ...]
    differs: bool
    evidence: tuple[Observation, ...]

    def answers(self, operand: int) -> dict[int, Answer]:
        """Input index -> answer, for one operand."""
        return {seen.input: seen.answer for seen in self.evidence if seen.operand == operand}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` found: all that a renderer is given. `main` is the input that `Row.values` speak of."""

    tensorlens: str
    torch: str
    operands: tuple[Operand, ...]
    inputs: tuple[Input, ...]
    main: int
    rows: tuple[Row, ...]
    summary: str

    def row(self, probe: str) -> Row | None:
        """The row of a probe, None where nothing was measured for it."""
        return next((row for row in self.rows if row.probe == probe), None)


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """The JSON object of a comparison."""
    rows = [
        {
            "probe": row.probe,
            "label": row.label,
            "group": row.group,
            "level": row.level,
            "values": list(row.values),
            "differs": row.differs,
            "evidence": [
                {"operand": seen.operand, "input": seen.input, **asdict(seen.answer)} for seen in row.evidence
            ],
        }
        for row in comparison.rows
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "tensorlens": comparison.tensorlens,
        "torch": comparison.torch,
        "operands": [asdict(operand) for operand in comparison.operands],
        "inputs": [
            {**asdict(each), "shape": list(each.shape), "contiguous": each.contiguous} for each in comparison.inputs
        ],
        "main_input": comparison.main,
        "rows": rows,
        "summary": comparison.summary,
    }


def from_dict(data: Mapping[str, Any]) -> Comparison:
    """The comparison that `to_dict` wrote."""
    if data.get("format") != FORMAT or data.get("version") != VERSION:
        raise ValueError(f"not a {FORMAT} of version {VERSION}")
    return Comparison(
        tensorlens=data["tensorlens"],
        torch=data["torch"],
        operands=tuple(Operand(**each) for each in data["operands"]),
        inputs=tuple(input_from(each) for each in data["inputs"]),
        main=data["main_input"],
        rows=tuple(_row(each) for each in data["rows"]),
        summary=data["summary"],
    )


def input_from(data: Mapping[str, Any]) -> Input:
    """An `Input` from its JSON object."""
    known = {key: value for key, value in data.items() if key != "contiguous"}
    return Input(**{**known, "shape": tuple(data["shape"])})


def _row(data: Mapping[str, Any]) -> Row:
    evidence = (
        Observation(each["operand"], each["input"], Answer(each["value"], each["text"], each["error"], each["code"]))
        for each in data["evidence"]
    )
    values = tuple(data["values"])
    return Row(data["probe"], data["label"], data["group"], data["level"], values, data["differs"], tuple(evidence))

"""Describes a traced run to the child process that makes it: one record, passed as JSON on the command line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """One of the two runs that `--reference` compares."""

    seed: int  # of every random generator, the same in both runs
    remove_hash_seed: bool  # PYTHONHASHSEED is not in the user's environment, so the script must not see it
    copy_saved_tensors: bool  # the second run: autograd saves copies


@dataclass(frozen=True, slots=True)
class ChildConfig:
    """The program to run, and how to record it."""

    kind: Literal["file", "module", "stdin"]
    name: str
    argv: tuple[str, ...] = ()
    check_claims: bool = False  # check the `#:` lines
    live: bool = False  # the parent shows its progress line on the child's standard error
    overflow_pipe: tuple[int, int] | None = None  # takes the journal when the disk is full
    reference: ReferenceRun | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ChildConfig:
        fields: dict[str, Any] = json.loads(text)
        pipe, reference = fields.get("overflow_pipe"), fields.get("reference")
        fields["argv"] = tuple(fields.get("argv", ()))
        fields["overflow_pipe"] = None if pipe is None else (pipe[0], pipe[1])
        fields["reference"] = None if reference is None else ReferenceRun(**reference)
        return cls(**fields)

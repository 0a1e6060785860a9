"""The frozen records of the user's own functions that autograd calls back: where each is defined, where autograd was
given it, and what came of it when it was called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensorlens.records.fields import FunctionId, RegistrationId, SiteId, TensorId

Ending = Literal["returned", "raised", "refused"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the user's that autograd calls back, or the class of a custom `autograd.Function`."""

    id: int
    name: str  # "average", "Scale.backward", "<lambda>", "Scale"
    defined: SiteId | None  # site of its `def` line, of a lambda's body, or of the `class` line; None: not the user's
    returns: tuple[SiteId, ...]  # sites of the statements that hand back a value
    least: int  # positional arguments that it needs
    most: int | None  # ... and that it takes; None: any number


@dataclass(frozen=True, slots=True)
class Registration:
    """A function was handed to autograd at a site: as a hook, or as a method of a custom Function called there."""

    id: int
    function: FunctionId
    kind: str  # "tensor hook", "module backward hook", "pack hook", "backward", "class", ...
    site: SiteId
    target: int | None  # what it hangs on: the id of a tensor, or a number given to the module or operator


@dataclass(frozen=True, slots=True)
class Handed:
    """One of the values that a callback handed back."""

    tensor: TensorId | None
    type: str


@dataclass(frozen=True, slots=True)
class Run:
    """Autograd called a function back."""

    index: int  # position among the events: it ended before the event of this index
    registration: RegistrationId
    returned: SiteId | None  # site of the statement that handed back the value
    values: tuple[Handed, ...]  # what it handed back: one, or the items of a tuple
    given: tuple[TensorId, ...]  # the tensors that it was given
    node: int | None  # sequence number of the custom Function's node, for a `backward`
    ended: Ending  # refused: its arguments did not fit


@dataclass(frozen=True, slots=True)
class Callbacks:
    """All that is known of callbacks; of the runs the latest, where there were many."""

    functions: tuple[Function, ...] = ()
    registrations: tuple[Registration, ...] = ()
    runs: tuple[Run, ...] = ()

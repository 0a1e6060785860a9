"""Makes the edits that run a part of a forward pass below the statement that changed the parameters it used.

The part is the statements between the first stale result that a backward needs and the change. A statement moves if
nothing between needs its result; else a copy of it is added. There is no edit if one of them does more than compute.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tensorlens.analysis.code_around import first_line, is_inside
from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.shared_block import FrameTensors, SharedBlock, functions_of, shared_block
from tensorlens.analysis.shared_frame import SharedFrame
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.block_names import binds, keeps_to_itself, only_computes, only_parts, reads
from tensorlens.diagnostics.shared.edits.statements import block_lines, inserted_after, without_statement
from tensorlens.records.model import Failure, Span
from tensorlens.records.report import Edit

_RANDOM = re.compile("rand|dropout|normal|bernoulli|multinomial|poisson|uniform|exponential|sample")


@dataclass(frozen=True, slots=True)
class RunAgain:
    """The edits, the statements that they move or repeat, whether all of them move, and the variables they detach."""

    edits: tuple[Edit, ...]
    statements: tuple[ast.stmt, ...]
    all_move: bool
    cut: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(map(first_line, self.statements))


@dataclass(slots=True)
class _Part:
    """The statements to run again, by position, with the variables that are needed of each."""

    needed: dict[int, set[str]] = field(default_factory=dict)
    between: set[int] = field(default_factory=set)  # later statements that use their results


class Rerun:
    """Finds the statements to run again below a change, in the block that it shares with a failed backward."""

    def __init__(self, facts: TraceIndex, failure: Failure, frame: SharedFrame, changed_at: int) -> None:
        self._facts, self._failure, self._site = facts, failure, frame.backward
        self._tensors = FrameTensors(facts, failure, frame.backward, changed_at)
        block = shared_block(facts, frame) if self._tensors.is_known else None
        self._part = None if block is None else self._find(block)
        self._block = block

    def edits(self) -> RunAgain | None:
        """Runs the stale part of the forward pass again."""
        if self._block is None or not self._part:
            return None
        block, needed = self._block, self._part.needed
        moved = {at for at in sorted(needed, reverse=True) if self._moves(block, at, needed)}
        moved = {at for at in moved if not any(self._uses(block, other, at) for other in set(needed) - moved)}
        texts = [self._text(block, at, frozenset(names), at in moved) for at, names in sorted(needed.items())]
        return self._added(block, texts, moved)

    def detached(self, owned: set[int]) -> RunAgain | None:
        """Runs only what needs no parameter of `owned` again, from detached results of what comes before it.

        None if the backward needs a result of what comes before in another way.
        """
        if self._block is None or not self._part:
            return None
        block, needed = self._block, self._part.needed
        above = {at for at in needed if self._own_leaves(block, at) & owned}
        cut = frozenset(name for at in above for name in needed[at])
        later = {at for at in needed if at not in above}
        if not above or not later or max(above) > min(later):
            return None
        if any(reads(block.statements[at]) & cut for at in self._part.between) or reads(block.needing) & cut:
            return None
        texts = [self._text(block, at, frozenset(needed[at]), False, cut) for at in sorted(later)]
        found = self._added(block, texts, set())
        statements = tuple(block.statements[at] for at in sorted(later))
        return None if found is None else RunAgain(found.edits, statements, False, tuple(sorted(cut)))

    @property
    def is_random(self) -> bool:
        """Returns whether the statements draw random numbers: run again, they draw others."""
        if self._block is None or not self._part:
            return False
        spans = list(self._spans(self._block, self._part.needed))
        names = {name for names in self._part.needed.values() for name in names}
        calls = frozenset(index for name in names for index in self._tensors.calls(name))
        functions = functions_of(self._facts, calls, self._site) or set()
        for call in self._facts.calls:
            if _RANDOM.search(call.op):
                site = self._facts.trace.sites[call.site]
                if place_of(site)[:2] in functions or any(is_inside(site.span, span) for span in spans):
                    return True
        return False

    def _spans(self, block: SharedBlock, needed: dict[int, set[str]]) -> Iterator[Span]:
        """Yields the places of the expressions to compute again."""
        for at, names in needed.items():
            value = getattr(only_parts(block.statements[at], frozenset(names)), "value", None)
            parts = value.elts if isinstance(value, ast.Tuple) else [value]
            for part in parts:
                if isinstance(part, ast.expr):
                    yield self._facts.span_of(part, block.file)

    # --- the statements ----------------------------------------------------------------------------------------

    def _find(self, block: SharedBlock) -> _Part | None:
        part, waiting = _Part(), [(name, block.backward) for name in sorted(reads(block.needing))]
        seen: set[tuple[str, int]] = set()
        while waiting:
            name, before = waiting.pop()
            if (name, before) in seen:
                continue
            seen.add((name, before))
            made = self._maker(block, name, before)
            if self._tensors.has_stale_attribute(name) and not (made is not None and made > block.change):
                return None  # an object carries the stale result
            if made is None:
                if self._tensors.is_stale(name):
                    return None  # it was computed outside of this block
                continue
            if made == block.change:
                continue
            if made > block.change:
                part.between.add(made)
            elif not self._is_needed_again(block, name, made):
                if self._tensors.is_overwritten(name):
                    return None
                continue
            else:
                part.needed.setdefault(made, set()).add(name)
            reduced = only_parts(block.statements[made], frozenset(part.needed.get(made, {name})))
            waiting += [(each, made) for each in sorted(reads(reduced))]
        return part if part.needed and self._is_safe(block, part) else None

    def _maker(self, block: SharedBlock, name: str, before: int) -> int | None:
        return next((at for at in range(before - 1, -1, -1) if name in binds(block.statements[at])), None)

    def _is_needed_again(self, block: SharedBlock, name: str, made: int) -> bool:
        """Returns whether a variable has a stale value; one without tensors has if what it was made from is stale."""
        if self._maker(block, name, block.backward) != made:
            return True  # the value is gone by now
        if self._tensors.tensors(name):
            return self._tensors.is_stale(name)
        return any(self._is_stale_before(block, each, made) for each in reads(block.statements[made]))

    def _is_stale_before(self, block: SharedBlock, name: str, before: int) -> bool:
        made = self._maker(block, name, before)
        return self._tensors.is_stale(name) if made is None else self._is_needed_again(block, name, made)

    def _is_safe(self, block: SharedBlock, part: _Part) -> bool:
        """Returns whether the statements only compute, and read the same values below the change as above it."""
        order = sorted(part.needed)
        for at in order:
            statement = only_parts(block.statements[at], frozenset(part.needed[at]))
            if not only_computes(statement) or not self._calls_are_pure(part.needed[at]):
                return False
            for name in part.needed[at]:
                last = self._maker(block, name, block.change + 1)
                if last != at and not (last in part.needed and name in part.needed[last]):
                    return False  # the copy would replace a later value
            for name in reads(statement):
                before, after = self._maker(block, name, at), self._maker(block, name, block.change + 1)
                again = [other for other in order if other < at and name in part.needed[other]]
                if not (before == after if not again else before == again[-1]):
                    return False
                if not again and any(name in part.needed[other] for other in order if other < at):
                    return False
        return True

    def _calls_are_pure(self, names: set[str]) -> bool:
        calls = frozenset(index for name in names for index in self._tensors.calls(name))
        functions = functions_of(self._facts, calls, self._site)
        return functions is not None and all(
            keeps_to_itself(function) for place in functions for function in _functions(self._facts, *place)
        )

    def _own_leaves(self, block: SharedBlock, at: int) -> set[int]:
        """Returns the leaves that a statement itself uses: not those above its stale inputs."""
        part = self._part.needed if self._part else {}
        index = self._failure.index
        own = {
            leaf
            for name in part[at]
            for n in self._tensors.tensors(name)
            for leaf in graph_leaves(self._facts, n, index)
        }
        for name in reads(only_parts(block.statements[at], frozenset(part[at]))):
            if any(name in part[other] for other in part if other < at):
                for number in self._tensors.tensors(name):
                    own -= graph_leaves(self._facts, number, index)
        return own

    # --- the edits ---------------------------------------------------------------------------------------------

    def _moves(self, block: SharedBlock, at: int, needed: dict[int, set[str]]) -> bool:
        """Returns whether no statement up to the change needs what a statement binds."""
        bound = binds(block.statements[at])
        if bound - needed[at]:
            return False
        between = [n for n in range(at + 1, block.change + 1) if n not in needed]
        return not any((reads(block.statements[n]) | binds(block.statements[n])) & bound for n in between)

    def _uses(self, block: SharedBlock, at: int, other: int) -> bool:
        """Returns whether a statement that stays where it is reads what another binds."""
        return at > other and bool(reads(block.statements[at]) & binds(block.statements[other]))

    def _text(
        self, block: SharedBlock, at: int, names: frozenset[str], whole: bool, cut: frozenset[str] = frozenset()
    ) -> str | None:
        statement = block.statements[at]
        reduced = statement if whole else only_parts(statement, names)
        if reduced is statement and not cut & reads(statement):
            return block_lines(self._facts, block.file, statement)
        tree = _Detached(cut).visit(ast.parse(ast.unparse(reduced)))
        return ast.unparse(tree)

    def _added(self, block: SharedBlock, texts: list[str | None], moved: set[int]) -> RunAgain | None:
        statements = [block.statements[at] for at in sorted(moved)]
        removed = [without_statement(self._facts, block.file, first_line(each)) for each in statements]
        if None in texts or None in removed:
            return None
        change = block.statements[block.change]
        added = inserted_after(self._facts, block.file, first_line(change), "\n".join(text or "" for text in texts))
        if added is None:
            return None
        needed = self._part.needed if self._part else {}
        again = tuple(block.statements[at] for at in sorted(needed))
        return RunAgain((*(edit for edit in removed if edit), added), again, moved == set(needed))


class _Detached(ast.NodeTransformer):
    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._names or not isinstance(node.ctx, ast.Load):
            return node
        return ast.Call(ast.Attribute(node, "detach", ast.Load()), [], [])


def _functions(facts: TraceIndex, file: str, name: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    last = name.rpartition(".")[2]
    for node in ast.walk(facts.tree(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == last:
            yield node

"""Knows particular functions of PyTorch: their names, and the few that need care.

Everything else about an operation is measured when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType, FrameType, FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, Protocol

import torch
from torch.overrides import handle_torch_function, has_torch_function, resolve_name

from tensorlens.journal.rows import SHARED_MEMORY
from tensorlens.tracer.frames.call_sites import frame_at
from tensorlens.tracer.isolation.guard import Function, reraise_user_error

Args = tuple[Any, ...]
Kwargs = dict[str, Any]


class CallRecorder(Protocol):
    """Says what this module asks of the recorder."""

    risky: bool

    def call(self, func: Function, args: Args, kwargs: Kwargs, frame: FrameType | None) -> Any: ...
    def internal_error(self, what: str, error: Exception, frame: FrameType | None = None) -> None: ...


_QUIET_PROPERTIES = (
    "shape dtype device layout ndim requires_grad is_leaf _version names is_cuda is_cpu is_sparse is_sparse_csr is_mps"
    " is_meta is_quantized is_nested is_mkldnn is_xla is_xpu is_vulkan is_ipu is_maia is_mtia itemsize nbytes output_nr"
    " name retains_grad volatile _base _grad_fn _cdata _backward_hooks _post_accumulate_grad_hooks "
    " is_cpu"
).split()
_QUIET_METHODS = (
    "size dim ndimension numel nelement stride storage_offset data_ptr is_contiguous is_floating_point is_complex"
    " element_size get_device __len__ __hash__ has_names is_inference is_shared is_pinned"
    " is_same_size is_set_to is_signed is_conj is_neg __dir__ storage_type"
    " _typed_storage type sparse_dim dense_dim __reduce_ex__ __torch_dispatch__ dim_order _is_view"
).split()


def getter(name: str) -> Function:
    """Returns the function by which a mode sees a read of a tensor's property."""
    get: Function = getattr(torch.Tensor, name).__get__
    return get


def setter(name: str) -> Function:
    """Returns the function by which a mode sees an assignment to a tensor's property."""
    assign: Function = getattr(torch.Tensor, name).__set__
    return assign


def _accessors(name: str, method: str) -> set[Function]:
    attribute = getattr(torch.Tensor, name, None)
    return {getattr(attribute, method)} if hasattr(attribute, method) else set()


def _quiet() -> set[Function]:
    quiet: set[Function] = set()
    for name in _QUIET_PROPERTIES:
        quiet |= _accessors(name, "__get__")
    for name in ("name", "_backward_hooks", "_post_accumulate_grad_hooks", "names"):
        quiet |= _accessors(name, "__set__")
    quiet |= {getattr(torch.Tensor, name) for name in _QUIET_METHODS if hasattr(torch.Tensor, name)}
    profiler = torch.ops.profiler
    quiet |= {profiler._record_function_enter_new, profiler._record_function_exit._RecordFunction}
    return quiet | {torch.get_default_dtype, torch.is_grad_enabled, torch.is_floating_point, torch.numel}


QUIET = _quiet()
"""Functions that only read a fact. They are not recorded."""

SHARES_COUNTER = {torch.Tensor.detach, torch.detach}
"""Functions whose result shares the version counter of their first argument without being a view of it."""

STATEFUL = {
    torch.Tensor.requires_grad_,
    setter("requires_grad"),
    torch.Tensor.detach_,
    torch.Tensor.retain_grad,
    setter("data"),
    setter("grad"),
    torch.Tensor.resize_,
}
"""Functions that change the autograd state of their first argument without moving its version."""

MOVING = {setter("data"), torch.Tensor.set_}
"""Functions that give their first argument other memory."""

SHARED_WITH_NUMPY = SHARED_MEMORY

FUSED = "a fused optimizer changes parameters without moving their versions: autograd can't notice that they changed"
COMPILED = (
    "compiled by `torch.compile`: what runs inside is not seen (TORCHDYNAMO_DISABLE=1 runs it eagerly; "
    "--reference=eager compares its gradients)"
)
LATE = (
    "registered after compiled code has run: whether that code calls the hook is not seen (--reference=eager compares "
    "the gradients)"
)

Handler = Callable[[Any, Function, Args, Kwargs], Any]  # handler(recorder, func, args, kwargs)
Risk = Callable[[Args, Kwargs], bool]

SPECIAL: dict[Function, Handler] = {}
"""Functions with a handler of their own. `register` fills it."""

RISKS: dict[Function, Risk] = {}
"""Functions whose derivative may be infinite or NaN, each with a check of its arguments. `register` fills it."""


def register(handlers: dict[Function, Handler], risks: dict[Function, Risk]) -> None:
    """Adds to `SPECIAL` and `RISKS` what other rooms know of functions."""
    SPECIAL.update(handlers)
    RISKS.update(risks)


DATA, GRAD = getter("data"), getter("grad")
ELSEWHERE = {DATA, torch.as_tensor, torch.asarray, torch.frombuffer, torch.from_file}
"""Functions whose result may share memory with an object that is not its base."""


_NOT_DIFFERENTIABLE = {
    "floor_divide",
    "floordiv",
    "rfloordiv",
    "heaviside",
    "linalg_ldl_solve",
    "scatter",
    "scaled_mm",
    "scaled_mm_v2",
}
"""Functions whose results may require grad by a node that only raises. Such a node takes no sequence number."""

UNKNOWN, ALIAS, READ, NORM, SLOW, ORDINARY, SIMPLE, VIEW = range(8)
"""The kinds of calls, which decide their path through the recorder: see `dispatch_mode`."""


_METHODS = {name: getattr(torch.Tensor, name) for name in dir(torch.Tensor)}  # the originals


_OF_ONE_FUNCTION = {DATA: ALIAS, GRAD: READ, torch.nn.functional.batch_norm: NORM}


def original_of(function: Function) -> Function | None:
    """Returns the method of PyTorch that the program has replaced by `function` on `torch.Tensor`, or None.

    The program's function runs first and calls the original method. The original gives the call to the mode, under the
    function that `torch.Tensor` now has by that name. To call that function would run it twice.
    """
    if not isinstance(function, FunctionType):
        return None
    for name, value in vars(torch.Tensor).items():
        if value is function:
            original: Function | None = _METHODS.get(name)
            return None if original is function else original
    return None


def _run_original(recorder: CallRecorder, func: Function, args: Args, kwargs: Kwargs) -> Any:
    original = original_of(func)
    if original is None or original in QUIET:
        return (original or func)(*args, **kwargs)
    special = SPECIAL.get(original)
    if special is not None:
        return special(recorder, original, args, kwargs)
    return recorder.call(original, args, kwargs, frame_at(2))


def call_kind(func: Function) -> int:
    """Returns ALIAS, READ, NORM, SLOW, ORDINARY, SIMPLE or VIEW."""
    if original_of(func) is not None:
        SPECIAL[func] = _run_original
    if func in _OF_ONE_FUNCTION:
        return _OF_ONE_FUNCTION[func]
    if func in QUIET or func in SPECIAL or func in STATEFUL or func in SHARES_COUNTER or func in ELSEWHERE:
        return SLOW
    if isinstance(func, FunctionType):
        return ORDINARY
    if not isinstance(func, BuiltinFunctionType | MethodDescriptorType | WrapperDescriptorType):
        return SLOW
    if func.__name__.strip("_") in _NOT_DIFFERENTIABLE:
        return ORDINARY
    if _every_kernel(func, _returns_new):
        return SIMPLE
    return VIEW if _every_kernel(func, _returns_view) else ORDINARY


def kind_of_norm(saved_statistics: set[int], args: Args, kwargs: Kwargs) -> int:
    """Returns ORDINARY for a call of batch norm that saves no running statistics and changes none that are saved, and
    SLOW for others."""
    training = kwargs.get("training") if len(args) == 3 else None  # as PyTorch passes them on
    is_ordinary = not saved_statistics if training is True else training is False and not torch.is_grad_enabled()
    return ORDINARY if is_ordinary else SLOW


def _every_kernel(func: Function, check: Callable[[Any], bool]) -> bool:
    """Returns whether every overload of a function without `out=` is a kernel whose schema passes `check`.

    A kernel takes a tensor first, returns one tensor, and has a derivative of its own, not one composed of other
    functions. The schemas and the dispatcher say so. The types of the arguments then determine its grad_fn.
    `tests/tracer/test_fast_path.py` checks all of `op_db`.
    """
    name = func.__name__.strip("_") if func.__name__.startswith("__") else func.__name__
    schemas = [
        schema
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        if "Tensor" in str(schema) and not any(argument.is_out for argument in schema.arguments)
    ]
    return bool(schemas) and all(_is_kernel(schema) and check(schema) for schema in schemas)


def _returns_new(schema: Any) -> bool:
    return all(value.alias_info is None for value in (*schema.arguments, *schema.returns))


def _returns_view(schema: Any) -> bool:
    first, *others = schema.arguments
    aliases = first.alias_info, schema.returns[0].alias_info
    return (
        all(alias is not None and not alias.is_write and len(alias.before_set) == 1 for alias in aliases)
        and aliases[0].before_set == aliases[1].before_set
        and all(argument.alias_info is None for argument in others)
    )


_WRITING_OPERATORS = {
    f"__{name}__" for name in "setitem iadd isub imul itruediv ifloordiv imod ipow iand ior ixor".split()
}
_STATISTICS = ("batch_norm", "instance_norm")  # they write running statistics, which their schemas do not say


def may_write(func: Function, args: Args, kwargs: Kwargs) -> bool:
    """Returns whether a call can have changed a version. Else another thread has, while the call ran.

    A custom Function counts as none that can: the writes in its forward pass are calls of their own.
    """
    name = str(getattr(func, "__name__", ""))
    if (name.endswith("_") and not name.endswith("__")) or name in _WRITING_OPERATORS or "out" in kwargs:
        return True
    if any(norm in name for norm in _STATISTICS):
        return True
    if isinstance(func, FunctionType):
        names = func.__code__.co_varnames[: func.__code__.co_argcount]
        given = dict(zip(names, args, strict=False)) | kwargs
        is_torchs = str(func.__module__).startswith("torch.")
        return not is_torchs or given.get("inplace") is True or given.get("max_norm") is not None
    return isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket)


def unknown(recorder: CallRecorder, error: Exception, frame: FrameType | None) -> int:
    """Reports a function whose kind can't be looked up; returns UNKNOWN."""
    recorder.internal_error("a call", error, frame)
    return UNKNOWN


def dispatched(func: Function, args: Args, kwargs: Kwargs) -> Any:
    """Makes a call as PyTorch would without the recorder, which is off the mode stack here."""
    values = (*args, *kwargs.values())
    return handle_torch_function(func, values, *args, **kwargs) if has_torch_function(values) else func(*args, **kwargs)


def _is_kernel(schema: Any) -> bool:
    if str(schema.arguments[0].type) != "Tensor" or [str(value.type) for value in schema.returns] != ["Tensor"]:
        return False
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    try:
        return not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
    except RuntimeError:  # an overload that only TorchScript has
        return True


def note_risk(recorder: CallRecorder, func: Function, args: Args, kwargs: Kwargs) -> None:
    """Notes on the recorder that autograd recorded an operation whose derivative may be infinite or NaN."""
    if func in RISKS and not recorder.risky and torch.is_grad_enabled():
        try:
            recorder.risky = RISKS[func](args, kwargs)
        except Exception as error:  # the check failed: the derivative is looked at, perhaps in vain
            reraise_user_error(error)
            recorder.risky = True


_names: dict[Function, str] = {}
_resolve_name = getattr(resolve_name, "__wrapped__", resolve_name)  # its wrapper changes `warnings.filters`


def read_names() -> None:
    """Builds PyTorch's index of names now. PyTorch builds it lazily and touches `warnings.filters`, which would make
    Python repeat warnings that it has already shown."""
    resolve_name(torch.ones)


def name_of(func: Function) -> str:
    """Returns a short, unique, stable name: "Tensor.add_" for `torch.Tensor.add_`, "nn.functional.relu"."""
    try:
        return _names[func]
    except KeyError:
        name = _names[func] = _resolve(func)
        return name


def _resolve(func: Function) -> str:
    name: str = _resolve_name(func) or ""
    if not name:
        name = f"{getattr(func, '__module__', None) or 'torch'}.{getattr(func, '__qualname__', type(func).__name__)}"
    name = name.replace("torch._VariableFunctionsClass.", "torch.")  # the home of `torch.add` and the like
    short = ("torch.Tensor.", "torch.nn.", "torch.autograd.")
    return name.removeprefix("torch.") if name.startswith(short) else name

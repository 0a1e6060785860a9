"""What the recorder must know of particular torch functions: their names, and the few that need care.

Everything else about an op is measured when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

import torch
from torch.overrides import handle_torch_function, has_torch_function, resolve_name

from tensorlens.journal.rows import SHARED_MEMORY
from tensorlens.tracer.frames.call_sites import frame_at

_QUIET_PROPERTIES = (
    "shape dtype device layout ndim requires_grad is_leaf _version names is_cuda is_cpu is_sparse is_sparse_csr is_mps"
    " is_meta is_quantized is_nested is_mkldnn is_xla is_xpu is_vulkan is_ipu is_maia is_mtia itemsize nbytes output_nr"
    " name retains_grad volatile _base _grad_fn _cdata _backward_hooks _post_accumulate_grad_hooks "
    " is_cpu"
).split()
_QUIET_METHODS = (
    "size dim ndimension numel nelement stride storage_offset data_ptr is_contiguous is_floating_point is_complex"
    " element_size get_device __len__ __hash__ __repr__ __str__ __format__ has_names is_inference is_shared is_pinned"
    " is_same_size is_set_to is_signed is_conj is_neg __contains__ __dir__ storage_type"
    " _typed_storage type sparse_dim dense_dim __reduce_ex__ __torch_dispatch__ dim_order _is_view"
).split()


def getter(name: str) -> Any:
    """What a read of the property `name` of a tensor arrives as."""
    attribute: Any = getattr(torch.Tensor, name)
    return attribute.__get__


def setter(name: str) -> Any:
    """What an assignment to the property `name` of a tensor arrives as."""
    attribute: Any = getattr(torch.Tensor, name)
    return attribute.__set__


def _accessors(name: str, method: str) -> set[Any]:
    attribute: Any = getattr(torch.Tensor, name, None)
    return {getattr(attribute, method)} if hasattr(attribute, method) else set()


def _quiet() -> set[Any]:
    found: set[Any] = set()
    for name in _QUIET_PROPERTIES:
        found |= _accessors(name, "__get__")
    for name in ("name", "_backward_hooks", "_post_accumulate_grad_hooks", "names"):
        found |= _accessors(name, "__set__")
    found |= {getattr(torch.Tensor, name) for name in _QUIET_METHODS if hasattr(torch.Tensor, name)}
    profiler: Any = torch.ops.profiler
    found |= {profiler._record_function_enter_new, profiler._record_function_exit._RecordFunction}
    return found | {torch.get_default_dtype, torch.is_grad_enabled, torch.is_floating_point, torch.numel}


QUIET = _quiet()
"""Questions that change nothing and make nothing: passed straight through, not recorded."""

SHARES_COUNTER = {torch.Tensor.detach, torch.detach}
"""Functions whose result shares the version counter of its first argument without being its view."""

STATEFUL = {
    torch.Tensor.requires_grad_,
    setter("requires_grad"),
    torch.Tensor.detach_,
    torch.Tensor.retain_grad,
    setter("data"),
    setter("grad"),
    torch.Tensor.resize_,
}
"""Functions that change what autograd says of their first argument without moving its version."""

MOVING = {setter("data"), torch.Tensor.set_}
"""Functions that put their first argument on other memory."""

SHARED_WITH_NUMPY = SHARED_MEMORY

FUSED = "a fused optimizer changes parameters without moving their versions: autograd can't notice that they changed"
COMPILED = "compiled by `torch.compile`: what runs inside is not seen (TORCHDYNAMO_DISABLE=1 runs it eagerly)"

SPECIAL: dict[Any, Callable[[Any, Any, Any, Any], Any]] = {}
"""Functions with a handler of their own, `handler(recorder, func, args, kwargs)`; filled by `patches`."""

ELSEWHERE = {getter("data"), torch.as_tensor, torch.asarray, torch.frombuffer, torch.from_file}
"""Functions whose result may lie on memory that is neither fresh nor that of the result's base."""


_REFUSING = {
    "floor_divide",
    "floordiv",
    "rfloordiv",
    "heaviside",
    "linalg_ldl_solve",
    "scatter",
    "scaled_mm",
    "scaled_mm_v2",
}
"""Functions whose results may require grad by a node that only raises, and that draws no sequence number."""

UNKNOWN, SLOW, ORDINARY, SIMPLE, VIEW = range(5)
"""The call_kinds through the recorder (see `hot`)."""


_METHODS = {name: getattr(torch.Tensor, name) for name in dir(torch.Tensor)}  # as torch made them


def replaced(function: Any) -> Any:
    """The method of torch's that a function of the program's own has taken the place of on `torch.Tensor`, or None.

    Torch looks a method up by its name when it hands a call to a mode: what arrives here is then the program's
    function, from inside its own call of the original. Run as it is, it would run twice.
    """
    if not isinstance(function, FunctionType):
        return None
    for name, value in vars(torch.Tensor).items():
        if value is function:
            original = _METHODS.get(name)
            return None if original is function else original
    return None


def _run_original(recorder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    original = replaced(func)
    if original is None or original in QUIET:
        return (original or func)(*args, **kwargs)
    special = SPECIAL.get(original)
    if special is not None:
        return special(recorder, original, args, kwargs)
    return recorder.call(original, args, kwargs, frame_at(2))


def call_kind(func: Any) -> int:
    if replaced(func) is not None:
        SPECIAL[func] = _run_original
    if func in QUIET or func in SPECIAL or func in STATEFUL or func in SHARES_COUNTER or func in ELSEWHERE:
        return SLOW
    if isinstance(func, FunctionType):
        return ORDINARY
    if not isinstance(func, BuiltinFunctionType | MethodDescriptorType | WrapperDescriptorType):
        return SLOW
    if func.__name__.strip("_") in _REFUSING:
        return ORDINARY
    if _every_kernel(func, _returns_new):
        return SIMPLE
    return VIEW if _every_kernel(func, _returns_view) else ORDINARY


def _every_kernel(func: Any, check: Callable[[Any], bool]) -> bool:
    """Whether every overload of a function, but for those with `out=`, is a kernel that passes `check`: it takes a
    tensor first, returns one tensor, and has a derivative of its own, not one composed of other functions.

    Read from the schemas and the dispatcher. Whether the kernel returns a new tensor at version 0 or a view is known
    then, and its grad_fn follows from the types of the arguments. `tests/tracer/test_fast_path.py` checks it with all
    of `op_db`.
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


def unknown(recorder: Any, error: Exception, frame: Any) -> int:
    """The way of what can't be looked up."""
    recorder.internal_error("a call", error, frame)
    return UNKNOWN


def dispatched(func: Any, args: Any, kwargs: Any) -> Any:
    """What becomes of a call without our mode, which is off the stack."""
    values = (*args, *kwargs.values())
    return handle_torch_function(func, values, *args, **kwargs) if has_torch_function(values) else func(*args, **kwargs)


def _is_kernel(schema: Any) -> bool:
    if str(schema.arguments[0].type) != "Tensor" or [str(value.type) for value in schema.returns] != ["Tensor"]:
        return False
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    try:
        return not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
    except RuntimeError:  # an overload of the scripting language's own
        return True


RISKS: dict[Any, Callable[[Any, Any], bool]] = {}
"""Functions whose derivative may not be finite everywhere, with what tells it from arguments; filled by `singular`."""


def note_risk(recorder: Any, func: Any, args: Any, kwargs: Any) -> None:
    """Remember that autograd recorded an operation without a finite derivative everywhere."""
    if func in RISKS and not recorder.risky and torch.is_grad_enabled():
        try:
            recorder.risky = RISKS[func](args, kwargs)
        except Exception:  # ours: the derivative is looked at, where it may not be needed
            recorder.risky = True


_names: dict[Any, str] = {}
_resolve_name = getattr(resolve_name, "__wrapped__", resolve_name)  # what is round it changes `warnings.filters`


def read_names() -> None:
    """Let torch make its index of names. It does so at the first question, and changes `warnings.filters` meanwhile:
    python would show the program a warning again that it has shown already."""
    resolve_name(torch.ones)


def name_of(func: Any) -> str:
    """ "Tensor.add_" for `torch.Tensor.add_`, "nn.functional.relu", "torch.tensor": short, unique, stable."""
    try:
        return _names[func]
    except KeyError:
        name = _names[func] = _resolve(func)
        return name


def _resolve(func: Any) -> str:
    name: str = _resolve_name(func) or ""
    if not name:
        name = f"{getattr(func, '__module__', None) or 'torch'}.{getattr(func, '__qualname__', type(func).__name__)}"
    name = name.replace("torch._VariableFunctionsClass.", "torch.")  # `torch.add` and its kin live there
    short = ("torch.Tensor.", "torch.nn.", "torch.autograd.")
    return name.removeprefix("torch.") if name.startswith(short) else name

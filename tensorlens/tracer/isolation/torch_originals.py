"""Names the tensor functions of PyTorch that the lens calls itself.

The program may have replaced some of them on `torch.Tensor` or in `torch`. The lens must not call the replacements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor
Making = Callable[..., Tensor]
Counting = Callable[[Tensor], int]
_methods: Any = torch._C.TensorBase
_functions: Any = torch._C._VariableFunctions

data_ptr: Counting = _methods.data_ptr
numel: Counting = _methods.numel
element_size: Counting = _methods.element_size
storage_offset: Counting = _methods.storage_offset
stride: Callable[[Tensor], tuple[int, ...]] = _methods.stride
untyped_storage: Callable[[Tensor], torch.UntypedStorage] = _methods.untyped_storage
is_contiguous: Callable[[Tensor], bool] = _methods.is_contiguous
is_complex: Callable[[Tensor], bool] = _methods.is_complex
tolist: Callable[[Tensor], Any] = _methods.tolist
item: Callable[[Tensor], Any] = _methods.item
dtype_of: Callable[[Tensor], torch.dtype] = _methods.dtype.__get__
device_of: Callable[[Tensor], torch.device] = _methods.device.__get__
layout_of: Callable[[Tensor], torch.layout] = _methods.layout.__get__

detach: Making = _methods.detach
clone: Making = _methods.clone
reshape: Making = _methods.reshape
as_strided: Making = _methods.as_strided
to: Making = _methods.to
absolute: Making = _methods.abs
total: Making = _methods.sum
every: Making = _methods.all
some: Making = _methods.any
isfinite: Making = _methods.isfinite
isinf: Making = _methods.isinf
isnan: Making = _methods.isnan

count_nonzero: Making = _functions.count_nonzero
not_equal: Making = _functions.ne
gather: Making = _functions.gather
norms: Callable[[list[Tensor], int], list[Tensor]] = _functions._foreach_norm
equal: Callable[[Tensor, Tensor], bool] = _functions.equal
isclose: Making = _functions.isclose
frombuffer: Making = _functions.frombuffer
ones: Making = _functions.ones
arange: Making = _functions.arange
stack: Making = _functions.stack
cat: Making = _functions.cat
view_as_real: Making = _functions.view_as_real

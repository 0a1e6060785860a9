/* The fast path of `fast_path.py` and `dispatch_mode.py` in C, with the tables that it looks tensors up in.

   `dispatch_mode.py` says which calls take the fast path and why each fact is read. The code in `fast_path_c/` follows
   it step by step and adds nothing of its own. A call that does not fit goes to Python: before the call to `fallback`
   (the fast path in Python), after the call to `FastPathMode.finish_on_slow_path`.

   Facts of a plain tensor (sizes, version, address, ...) are read by functions of PyTorch's C interface and a few of
   its C++ ones, whose addresses `native.py` finds and tries out. So a build works with any release of PyTorch, and
   where a function is missing or answers otherwise, the lens does everything in Python.
   `tests/tracer/test_compiled_fast_path.py` compares the rows of both. Functions return -1, or NULL, with an exception
   set, unless they say otherwise. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <structmember.h>

#ifndef SOURCE
#define SOURCE "" /* the SHA-256 of this file and of those in `fast_path_c/` when it was built */
#endif

/* They are parts of this file, so that the compiler sees all at once. Each uses those above it. */
#include "fast_path_c/constants.h"
#include "fast_path_c/names.h"
#include "fast_path_c/objects.h"
#include "fast_path_c/torch_functions.h"
#include "fast_path_c/tensors.h"
#include "fast_path_c/native.h"
#include "fast_path_c/hash_table.h"
#include "fast_path_c/storages.h"
#include "fast_path_c/entries.h"
#include "fast_path_c/numbers.h"
#include "fast_path_c/fast_path.h"
#include "fast_path_c/arguments.h"
#include "fast_path_c/new_tensors.h"
#include "fast_path_c/rows.h"
#include "fast_path_c/tensor_ids.h"
#include "fast_path_c/unrecorded.h"
#include "fast_path_c/gradients.h"
#include "fast_path_c/optimizer_steps.h"
#include "fast_path_c/steady_gradients.h"
#include "fast_path_c/user_frames.h"
#include "fast_path_c/templates.h"
#include "fast_path_c/results.h"
#include "fast_path_c/unsaved_memory.h"
#include "fast_path_c/slow_path.h"
#include "fast_path_c/calls.h"
#include "fast_path_c/data_reads.h"
#include "fast_path_c/dispatch.h"
#include "fast_path_c/fast_path_type.h"
#include "fast_path_c/step_counter.h"

static PyMethodDef functions[] = {
    {"has_bytes", (PyCFunction)(void (*)(void))has_bytes, METH_FASTCALL, "Returns whether bytes are at an address."},
    {"bind", bind, METH_VARARGS, "Takes the addresses of PyTorch's functions."},
    {"facts", facts, METH_O, "Returns what is read of a tensor."},
    {NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_fast_path", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC
PyInit__fast_path(void)
{
    if (intern_names() < 0)
        return NULL;
    PyTypeObject *types[] = {&FastPathType, &TableType, &StoragesType, &NumbersType, &StepCounterType, &RestoredType};
    PyObject *made = find_originals() < 0 ? NULL : PyModule_Create(&module);
    for (size_t n = 0; made != NULL && n < sizeof types / sizeof *types; n++)
        if (PyModule_AddType(made, types[n]) < 0)
            Py_CLEAR(made);
    if (made != NULL && PyModule_AddStringConstant(made, "SOURCE", SOURCE) < 0)
        Py_CLEAR(made);
    return made;
}

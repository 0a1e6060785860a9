/* The functions of `compact_calls.py` in C: the same results, a fraction of the cost.

   The code is in `compact_calls_c/`. Only Python's C API is used. TensorLens works without this file. `tests/journal/test_compact_calls.py` compares the
   results of both. Functions return -1, or NULL, with an exception set. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef SOURCE
#define SOURCE "" /* the SHA-256 of this file and of those in `compact_calls_c/` when it was built */
#endif

/* as in compact_calls.py */
enum { NONE = -1, TAIL = 4, KEPT = 5, STORAGE = 10, TENSOR = 11, TENSORS = 13, OF_STORAGE = 3, OF_TENSOR = 9, OF_TENSORS = 8 };

/* They are parts of this file, so that the compiler sees all at once. Each uses those above it. */
#include "compact_calls_c/runs.h"
#include "compact_calls_c/named_tensors.h"
#include "compact_calls_c/kept_calls.h"
#include "compact_calls_c/tables.h"

static PyMethodDef methods[] = {{"split", split, METH_O, NULL},
                                {"ends", (PyCFunction)(void (*)(void))ends, METH_FASTCALL, NULL},
                                {"count", (PyCFunction)(void (*)(void))count, METH_FASTCALL, NULL},
                                {"keep_new", (PyCFunction)(void (*)(void))keep_new, METH_FASTCALL, NULL},
                                {"merge", (PyCFunction)(void (*)(void))merge, METH_FASTCALL, NULL},
                                {"keep_only", (PyCFunction)(void (*)(void))keep_only, METH_FASTCALL, NULL},
                                {"add_aliases", (PyCFunction)(void (*)(void))add_aliases, METH_FASTCALL, NULL},
                                {"add_tensors", (PyCFunction)(void (*)(void))add_tensors, METH_FASTCALL, NULL},
                                {"add_changed", (PyCFunction)(void (*)(void))add_changed, METH_FASTCALL, NULL},
                                {"add_related", (PyCFunction)(void (*)(void))add_related, METH_FASTCALL, NULL},
                                {"read_tables", (PyCFunction)(void (*)(void))read_tables, METH_FASTCALL, NULL},
                                {NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_compact_calls", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC
PyInit__compact_calls(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddStringConstant(made, "SOURCE", SOURCE) < 0)
        Py_CLEAR(made);
    return made;
}

/* The functions of `compact_calls.py` in C: the same results, a fraction of the cost.

   Only Python's C API is used. TensorLens works without this file. `tests/journal/test_compact_calls.py` compares the
   results of both. Functions return -1, or NULL, with an exception set. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifndef SOURCE
#define SOURCE "" /* the SHA-256 of this file when it was built */
#endif

/* as in compact_calls.py */
enum { TAIL = 4, KEPT = 5, STORAGE = 10, TENSOR = 11, TENSORS = 13, OF_STORAGE = 3, OF_TENSOR = 9, OF_TENSORS = 8 };

typedef struct {
    Py_buffer numbers, ends;
    const int64_t *at;
    const uint32_t *end;
    Py_ssize_t start, stop; /* the calls to look at */
} Run;

static void
release(Run *run)
{
    PyBuffer_Release(&run->numbers);
    PyBuffer_Release(&run->ends);
}

/* Reads (numbers, ends, start, stop) at the front of `args`. */
static int
parse(PyObject *const *args, Run *run)
{
    if (PyObject_GetBuffer(args[0], &run->numbers, PyBUF_SIMPLE) < 0)
        return -1;
    if (PyObject_GetBuffer(args[1], &run->ends, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&run->numbers);
        return -1;
    }
    run->at = run->numbers.buf;
    run->end = run->ends.buf;
    run->start = PyLong_AsSsize_t(args[2]);
    run->stop = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(args[3]);
    Py_ssize_t calls = run->ends.len / (Py_ssize_t)sizeof(uint32_t), size = run->numbers.len / (Py_ssize_t)sizeof(int64_t);
    int sound = !PyErr_Occurred() && 0 <= run->start && run->start <= run->stop && run->stop <= calls;
    for (Py_ssize_t n = run->start; sound && n < run->stop; n++) /* `ends` made these, but memory is at stake */
        sound = run->end[n] <= size && run->end[n] >= (n ? run->end[n - 1] : 0) + 1 + TAIL;
    if (sound)
        return 0;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "no such calls");
    release(run);
    return -1;
}

static int
expect(Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted)
        return 0;
    PyErr_SetString(PyExc_TypeError, "wrong number of arguments");
    return -1;
}

/* --- split --------------------------------------------------------------------------------------------------------- */

static int
add_run(PyObject *found, const int64_t *numbers, Py_ssize_t count)
{
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)numbers, count * (Py_ssize_t)sizeof(int64_t));
    int failed = bytes == NULL || PyList_Append(found, bytes) < 0;
    Py_XDECREF(bytes);
    return failed ? -1 : 0;
}

static PyObject *
split(PyObject *Py_UNUSED(self), PyObject *items)
{
    if (!PyList_CheckExact(items)) {
        PyErr_SetString(PyExc_TypeError, "a list is missing");
        return NULL;
    }
    Py_ssize_t size = PyList_GET_SIZE(items), count = 0, position = 0;
    PyObject *found = PyList_New(0);
    int64_t *numbers = PyMem_New(int64_t, size ? size : 1);
    if (found == NULL || numbers == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    for (; position < size; position++) {
        PyObject *item = PyList_GET_ITEM(items, position);
        if (PyLong_CheckExact(item)) {
            int overflow;
            numbers[count] = PyLong_AsLongLongAndOverflow(item, &overflow);
            if (overflow)
                break;
            count++;
            continue;
        }
        if (!PyTuple_CheckExact(item) && !PyBytes_CheckExact(item))
            break;
        if (count && add_run(found, numbers, count) < 0)
            goto failed;
        count = 0;
        if (PyList_Append(found, item) < 0)
            goto failed;
    }
    if (count && add_run(found, numbers, count) < 0)
        goto failed;
    PyMem_Free(numbers);
    return Py_BuildValue("(Nn)", found, position);
failed:
    Py_XDECREF(found);
    PyMem_Free(numbers);
    return NULL;
}

/* --- ends, count --------------------------------------------------------------------------------------------------- */

static PyObject *
ends(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer numbers, lengths;
    if (expect(nargs, 2) < 0 || PyObject_GetBuffer(args[0], &numbers, PyBUF_SIMPLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(args[1], &lengths, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&numbers);
        return NULL;
    }
    const int64_t *at = numbers.buf, *length = lengths.buf;
    Py_ssize_t size = numbers.len / (Py_ssize_t)sizeof(int64_t), count = 0;
    Py_ssize_t templates = lengths.len / (Py_ssize_t)sizeof(int64_t);
    PyObject *result = PyBytes_FromStringAndSize(NULL, size / (1 + TAIL) * (Py_ssize_t)sizeof(uint32_t));
    if (result != NULL) {
        uint32_t *found = (uint32_t *)PyBytes_AS_STRING(result);
        for (Py_ssize_t position = 0; position < size; count++) {
            int64_t number = at[position];
            int64_t more = 0 <= number && number < templates ? length[number] : 0;
            if (more < 1 + TAIL || more > size - position)
                break;
            position += (Py_ssize_t)more;
            found[count] = (uint32_t)position;
        }
        _PyBytes_Resize(&result, count * (Py_ssize_t)sizeof(uint32_t));
    }
    PyBuffer_Release(&numbers);
    PyBuffer_Release(&lengths);
    return result;
}

static PyObject *
count(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    Run run;
    Py_buffer counts;
    if (expect(nargs, 5) < 0 || parse(args, &run) < 0)
        return NULL;
    if (PyObject_GetBuffer(args[4], &counts, PyBUF_WRITABLE) < 0) {
        release(&run);
        return NULL;
    }
    int64_t *totals = counts.buf;
    Py_ssize_t templates = counts.len / (Py_ssize_t)sizeof(int64_t);
    for (Py_ssize_t n = run.start; n < run.stop; n++) {
        int64_t number = run.at[n ? run.end[n - 1] : 0];
        if (0 <= number && number < templates)
            totals[number]++;
    }
    PyBuffer_Release(&counts);
    release(&run);
    Py_RETURN_NONE;
}

/* --- by_result, add_tensors ---------------------------------------------------------------------------------------- */

static int
note(PyObject *found, PyObject *tensor, Py_ssize_t position)
{
    PyObject *positions = PyDict_GetItemWithError(found, tensor), *number = PyLong_FromSsize_t(position);
    int failed = number == NULL || PyErr_Occurred() != NULL;
    if (!failed && positions == NULL) {
        positions = PyList_New(0);
        failed = positions == NULL || PyDict_SetItem(found, tensor, positions) < 0;
        Py_XDECREF(positions); /* the dict holds it */
    }
    if (!failed && PyList_GET_SIZE(positions) == KEPT)
        failed = PyList_SetSlice(positions, 1, 2, NULL) < 0;
    failed = failed || PyList_Append(positions, number) < 0;
    Py_XDECREF(number);
    return failed ? -1 : 0;
}

static PyObject *
by_result(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    Run run;
    if (expect(nargs, 5) < 0 || parse(args, &run) < 0)
        return NULL;
    PyObject *needed = args[4], *found = PyDict_New();
    for (Py_ssize_t n = run.start; found != NULL && n < run.stop; n++) {
        PyObject *tensor = PyLong_FromLongLong(run.at[run.end[n] - TAIL]);
        int wanted = tensor == NULL ? -1 : needed == Py_None ? 1 : PySet_Contains(needed, tensor);
        if (wanted < 0 || (wanted && note(found, tensor, n) < 0))
            Py_CLEAR(found);
        Py_XDECREF(tensor);
    }
    release(&run);
    return found;
}

/* Adds every tensor that call `n` names to a set. */
static int
add_named(const Run *run, Py_ssize_t n, PyObject *tensors)
{
    /* the template, then a tensor and a version each; the last tensor is the result, and its base follows it */
    Py_ssize_t first = n ? run->end[n - 1] : 0, last = run->end[n] - TAIL;
    int failed = 0;
    for (Py_ssize_t place = first + 1; !failed && place <= last + 1; place += place < last ? 2 : 1) {
        PyObject *tensor = PyLong_FromLongLong(run->at[place]);
        failed = tensor == NULL || PySet_Add(tensors, tensor) < 0;
        Py_XDECREF(tensor);
    }
    return failed ? -1 : 0;
}

static PyObject *
add_tensors(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    Run run;
    if (expect(nargs, 5) < 0 || parse(args, &run) < 0)
        return NULL;
    int failed = 0;
    for (Py_ssize_t n = run.start; !failed && n < run.stop; n++)
        failed = add_named(&run, n, args[4]) < 0;
    release(&run);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

/* --- add_changed, add_related -------------------------------------------------------------------------------------- */

static PyObject *
add_changed(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    Run run;
    if (expect(nargs, 5) < 0 || parse(args, &run) < 0)
        return NULL;
    int failed = 0;
    for (Py_ssize_t n = run.start; !failed && n < run.stop; n++) {
        Py_ssize_t place = (n ? run.end[n - 1] : 0) + 1, last = run.end[n] - TAIL;
        while (place < last && run.at[place] != run.at[last])
            place += 2;
        if (place >= last)
            continue;
        PyObject *tensor = PyLong_FromLongLong(run.at[last]);
        failed = tensor == NULL || PyDict_SetItem(args[4], tensor, Py_None) < 0;
        Py_XDECREF(tensor);
    }
    release(&run);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

/* Returns whether call `n` names a tensor of a set; -1 with an exception. */
static int
names_one(const Run *run, Py_ssize_t n, PyObject *tensors)
{
    Py_ssize_t first = n ? run->end[n - 1] : 0, last = run->end[n] - TAIL;
    int found = 0;
    for (Py_ssize_t place = first + 1; !found && place <= last + 1; place += place < last ? 2 : 1) {
        PyObject *tensor = PyLong_FromLongLong(run->at[place]);
        found = tensor == NULL ? -1 : PySet_Contains(tensors, tensor);
        Py_XDECREF(tensor);
    }
    return found;
}

static PyObject *
add_related(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    Run run;
    if (expect(nargs, 6) < 0 || parse(args, &run) < 0)
        return NULL;
    int failed = 0;
    for (Py_ssize_t n = run.start; !failed && n < run.stop; n++) {
        int found = names_one(&run, n, args[4]);
        failed = found < 0 || (found && add_named(&run, n, args[5]) < 0);
    }
    release(&run);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

/* --- read_tables --------------------------------------------------------------------------------------------------- */

/* Returns an object of a subclass of `tuple`, with the items of another tuple from number `first` on. */
static PyObject *
row_from(PyTypeObject *row_type, PyObject *item, Py_ssize_t first)
{
    Py_ssize_t size = PyTuple_GET_SIZE(item) - first;
    PyObject *row = row_type->tp_alloc(row_type, size);
    for (Py_ssize_t n = 0; row != NULL && n < size; n++)
        PyTuple_SET_ITEM(row, n, Py_NewRef(PyTuple_GET_ITEM(item, n + first)));
    return row;
}

static int
add_tensor(PyObject *tensors, PyTypeObject *row_type, PyObject *item)
{
    PyObject *row = row_from(row_type, item, 1);
    int failed = row == NULL || PyDict_SetItem(tensors, PyTuple_GET_ITEM(item, 1), row) < 0;
    Py_XDECREF(row);
    return failed ? -1 : 0;
}

/* Adds the tensors of one row: all get the same object. */
static int
add_kind(PyObject *tensors, PyObject *sizes, PyTypeObject *kind_type, PyObject *item)
{
    PyObject *ids = PyTuple_GET_ITEM(item, 1), *nbytes = PyTuple_GET_ITEM(item, 2), *kind = row_from(kind_type, item, 2);
    const int64_t *at = (const int64_t *)PyBytes_AS_STRING(ids);
    int failed = kind == NULL;
    for (Py_ssize_t n = 0; !failed && n < PyBytes_GET_SIZE(ids) / (Py_ssize_t)sizeof *at; n++) {
        PyObject *id = PyLong_FromLongLong(at[n]);
        failed = id == NULL || PyDict_SetItem(tensors, id, kind) < 0
                 || (nbytes != Py_None && PyDict_SetItem(sizes, id, nbytes) < 0);
        Py_XDECREF(id);
    }
    Py_XDECREF(kind);
    return failed ? -1 : 0;
}

/* Reads one row: 1 if it is one of these, 0 if it is of another kind. */
static int
read_table(PyObject *item, PyObject *sizes, PyObject *tensors, PyObject *row_type, PyObject *kind_type)
{
    Py_ssize_t size = PyTuple_CheckExact(item) ? PyTuple_GET_SIZE(item) : 0;
    if (size == 0 || !PyLong_CheckExact(PyTuple_GET_ITEM(item, 0)))
        return 0;
    int overflow, failed;
    long tag = PyLong_AsLongAndOverflow(PyTuple_GET_ITEM(item, 0), &overflow);
    if (!overflow && tag == STORAGE && size == OF_STORAGE)
        failed = PyDict_SetItem(sizes, PyTuple_GET_ITEM(item, 1), PyTuple_GET_ITEM(item, 2)) < 0;
    else if (!overflow && tag == TENSOR && size == OF_TENSOR)
        failed = add_tensor(tensors, (PyTypeObject *)row_type, item) < 0;
    else if (!overflow && tag == TENSORS && size == OF_TENSORS && PyBytes_CheckExact(PyTuple_GET_ITEM(item, 1)))
        failed = add_kind(tensors, sizes, (PyTypeObject *)kind_type, item) < 0;
    else
        return 0;
    return failed ? -1 : 1;
}

static int
is_tuple_type(PyObject *type)
{
    return PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type);
}

static PyObject *
read_tables(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (expect(nargs, 6) < 0)
        return NULL;
    PyObject *items = args[0], *sizes = args[2], *tensors = args[3];
    Py_ssize_t position = PyLong_AsSsize_t(args[1]);
    if (PyErr_Occurred())
        return NULL;
    if (position < 0 || !PyList_CheckExact(items) || !PyDict_CheckExact(sizes) || !PyDict_CheckExact(tensors)
        || !is_tuple_type(args[4]) || !is_tuple_type(args[5])) {
        PyErr_SetString(PyExc_TypeError, "wrong arguments");
        return NULL;
    }
    int is_table = 1;
    while (is_table == 1 && position < PyList_GET_SIZE(items)) {
        is_table = read_table(PyList_GET_ITEM(items, position), sizes, tensors, args[4], args[5]);
        position += is_table == 1;
    }
    return is_table < 0 ? NULL : PyLong_FromSsize_t(position);
}

static PyMethodDef methods[] = {{"split", split, METH_O, NULL},
                                {"ends", (PyCFunction)(void (*)(void))ends, METH_FASTCALL, NULL},
                                {"count", (PyCFunction)(void (*)(void))count, METH_FASTCALL, NULL},
                                {"by_result", (PyCFunction)(void (*)(void))by_result, METH_FASTCALL, NULL},
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

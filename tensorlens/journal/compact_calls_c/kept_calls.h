/* Keeps the calls that explain tensors, as `explaining_calls.py` does: single ones as bytes, or packed. */

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

/* Keeps call `n` for a tensor, after a head of two numbers. */
static int
keep_call(const Run *run, Py_ssize_t n, PyObject *kept, PyObject *tensor, int64_t index, int64_t step)
{
    int64_t head[] = {index + n, step};
    Py_ssize_t first = n ? run->end[n - 1] : 0, size = (run->end[n] - first) * (Py_ssize_t)sizeof *run->at;
    PyObject *call = PyBytes_FromStringAndSize(NULL, size + (Py_ssize_t)sizeof head);
    if (call == NULL)
        return -1;
    memcpy(PyBytes_AS_STRING(call), head, sizeof head);
    memcpy(PyBytes_AS_STRING(call) + sizeof head, run->at + first, size);
    int failed = PyDict_SetItem(kept, tensor, call);
    Py_DECREF(call);
    return failed;
}

/* Returns an item of explaining_calls.py: (index, call, name of the step). */
static PyObject *
item_of(int64_t index, const char *call, Py_ssize_t size, PyObject *steps, int64_t step)
{
    if (size < 0 || step < 0 || step >= PyList_GET_SIZE(steps))
        return PyErr_Format(PyExc_ValueError, "no such call");
    return Py_BuildValue("(Ly#O)", (long long)index, call, size, PyList_GET_ITEM(steps, step));
}

/* Keeps call `n` beside the only one that is kept for a tensor so far, with its head. */
static int
keep_second(const Run *run, Py_ssize_t n, PyObject *kept, PyObject *tensor, PyObject *only, int64_t index, PyObject *steps,
            int64_t step)
{
    int64_t head[2] = {0, NONE};
    Py_ssize_t first = n ? run->end[n - 1] : 0, size = PyBytes_GET_SIZE(only) - (Py_ssize_t)sizeof head;
    if (size >= 0)
        memcpy(head, PyBytes_AS_STRING(only), sizeof head);
    PyObject *one = item_of(head[0], PyBytes_AS_STRING(only) + sizeof head, size, steps, head[1]), *both = NULL;
    PyObject *other = item_of(index + n, (const char *)(run->at + first),
                              (run->end[n] - first) * (Py_ssize_t)sizeof *run->at, steps, step);
    if (one != NULL && other != NULL)
        both = PyTuple_Pack(2, one, other);
    int failed = both == NULL ? -1 : PyDict_SetItem(kept, tensor, both);
    Py_XDECREF(one);
    Py_XDECREF(other);
    Py_XDECREF(both);
    return failed;
}

/* Keeps call `n` for a tensor, as its first or second one, or notes it in `found`. */
static int
keep_or_note(const Run *run, Py_ssize_t n, PyObject *kept, PyObject *tensor, PyObject *found, int64_t last,
             PyObject *place)
{
    int64_t index = PyLong_AsLongLong(PyTuple_GET_ITEM(place, 0)), step = PyLong_AsLongLong(PyTuple_GET_ITEM(place, 1));
    if (run->at[run->end[n] - TAIL] <= last)
        return note(found, tensor, n);
    PyObject *before = PyDict_GetItemWithError(kept, tensor);
    if (before == NULL)
        return PyErr_Occurred() ? -1 : keep_call(run, n, kept, tensor, index, step);
    int is_noted = PyDict_Contains(found, tensor);
    if (is_noted < 0 || is_noted || !PyBytes_CheckExact(before))
        return is_noted < 0 ? -1 : note(found, tensor, n);
    return keep_second(run, n, kept, tensor, before, index, PyTuple_GET_ITEM(place, 2), step);
}

static PyObject *
keep_new(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    Run run;
    if (expect(nargs, 5) < 0 || !PyTuple_CheckExact(args[0]) || !PyTuple_CheckExact(args[4])
        || expect(PyTuple_GET_SIZE(args[0]), 4) < 0 || expect(PyTuple_GET_SIZE(args[4]), 3) < 0
        || !PyLong_CheckExact(PyTuple_GET_ITEM(args[4], 0)) || !PyLong_CheckExact(PyTuple_GET_ITEM(args[4], 1))
        || !PyList_CheckExact(PyTuple_GET_ITEM(args[4], 2)))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "wrong arguments");
    int64_t last = PyLong_AsLongLong(args[3]);
    if (PyErr_Occurred() || parse(&PyTuple_GET_ITEM(args[0], 0), &run) < 0)
        return NULL;
    PyObject *needed = args[1], *kept = args[2], *found = PyDict_New();
    for (Py_ssize_t n = run.start; found != NULL && n < run.stop; n++) {
        PyObject *tensor = PyLong_FromLongLong(run.at[run.end[n] - TAIL]);
        int failed = tensor == NULL, wanted = failed || needed == Py_None ? 1 : PySet_Contains(needed, tensor);
        if (!failed && wanted == 1)
            failed = keep_or_note(&run, n, kept, tensor, found, last, args[4]) < 0;
        if (failed || wanted < 0)
            Py_CLEAR(found);
        Py_XDECREF(tensor);
    }
    release(&run);
    return found;
}

/* --- single calls are packed --------------------------------------------------------------------------------------- */

typedef struct { /* one call of a tensor */
    int64_t tensor;
    const char *call;
    Py_ssize_t size; /* bytes */
} Single;

typedef struct {
    Single *calls;
    Py_ssize_t count, bytes;
} Singles;

static int
compare(const void *one, const void *other)
{
    int64_t a = ((const Single *)one)->tensor, b = ((const Single *)other)->tensor;
    return (a > b) - (a < b);
}

/* Lists the calls in a dict that are bytes, in order of the tensors. They are borrowed. */
static int
list_singles(PyObject *kept, Singles *found)
{
    PyObject *tensor, *call;
    Py_ssize_t place = 0;
    found->count = found->bytes = 0;
    found->calls = PyMem_New(Single, PyDict_GET_SIZE(kept) + 1);
    if (found->calls == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    while (PyDict_Next(kept, &place, &tensor, &call))
        if (PyBytes_CheckExact(call)) {
            found->calls[found->count++] =
                (Single){PyLong_AsLongLong(tensor), PyBytes_AS_STRING(call), PyBytes_GET_SIZE(call)};
            found->bytes += PyBytes_GET_SIZE(call);
        }
    qsort(found->calls, found->count, sizeof *found->calls, compare);
    return PyErr_Occurred() ? -1 : 0;
}

/* Lists the packed calls of the needed tensors, but of those of which several are kept. */
static int
list_packed(const Py_buffer *packed, PyObject *kept, PyObject *needed, Singles *found)
{
    const int64_t *tensors = packed[0].buf, *ends = packed[1].buf;
    Py_ssize_t count = packed[0].len / (Py_ssize_t)sizeof *tensors;
    found->count = found->bytes = 0;
    found->calls = PyMem_New(Single, count + 1);
    if (found->calls == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *tensor = PyLong_FromLongLong(tensors[n]);
        PyObject *several = tensor == NULL ? NULL : PyDict_GetItemWithError(kept, tensor);
        int wanted = several != NULL && !PyBytes_CheckExact(several) ? 0 : 1;
        if (wanted && tensor != NULL && needed != Py_None)
            wanted = PySet_Contains(needed, tensor);
        Py_XDECREF(tensor);
        if (PyErr_Occurred())
            return -1;
        int64_t first = n ? ends[n - 1] : 0, size = ends[n] - first;
        if (wanted && 0 <= first && 0 <= size && ends[n] <= packed[2].len) {
            found->calls[found->count++] = (Single){tensors[n], (const char *)packed[2].buf + first, size};
            found->bytes += size;
        }
    }
    return 0;
}

/* Returns the tensors, the ends and the contents of both, in order of the tensors, each as bytes. */
static PyObject *
merged(const Singles *one, const Singles *other)
{
    Py_ssize_t count = one->count + other->count, size = count * (Py_ssize_t)sizeof(int64_t), end = 0;
    PyObject *parts[] = {PyBytes_FromStringAndSize(NULL, size), PyBytes_FromStringAndSize(NULL, size),
                         PyBytes_FromStringAndSize(NULL, one->bytes + other->bytes)};
    int failed = parts[0] == NULL || parts[1] == NULL || parts[2] == NULL;
    for (Py_ssize_t n = 0, a = 0, b = 0; !failed && n < count; n++) {
        int is_first = b == other->count || (a < one->count && one->calls[a].tensor <= other->calls[b].tensor);
        const Single *next = is_first ? &one->calls[a++] : &other->calls[b++];
        memcpy(PyBytes_AS_STRING(parts[2]) + end, next->call, next->size);
        end += next->size;
        ((int64_t *)PyBytes_AS_STRING(parts[0]))[n] = next->tensor;
        ((int64_t *)PyBytes_AS_STRING(parts[1]))[n] = end;
    }
    PyObject *result = failed ? NULL : PyTuple_Pack(3, parts[0], parts[1], parts[2]);
    for (int n = 0; n < 3; n++)
        Py_XDECREF(parts[n]);
    return result;
}

static PyObject *
merge(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer packed[3];
    int taken = 0;
    if (expect(nargs, 5) < 0)
        return NULL;
    Singles before = {NULL}, added = {NULL};
    PyObject *kept = args[3], *result = NULL;
    while (taken < 3 && PyObject_GetBuffer(args[taken], &packed[taken], PyBUF_SIMPLE) == 0)
        taken++;
    if (taken == 3 && packed[0].len == packed[1].len && PyDict_CheckExact(kept)) {
        if (list_packed(packed, kept, args[4], &before) == 0 && list_singles(kept, &added) == 0)
            result = merged(&before, &added);
    } else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "wrong arguments");
    PyMem_Free(before.calls);
    PyMem_Free(added.calls);
    while (taken)
        PyBuffer_Release(&packed[--taken]);
    return result;
}

/* --- what is no longer needed is dropped --------------------------------------------------------------------------- */

static int
holds(PyObject *one, PyObject *other, PyObject *key)
{
    int found = PySequence_Contains(one, key);
    return found || other == Py_None ? found : PySequence_Contains(other, key);
}

static PyObject *
keep_only(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 && expect(nargs, 3) < 0)
        return NULL;
    PyObject *table = args[0], *also = nargs == 3 ? args[2] : Py_None, *dropped = PyList_New(0), *key, *value;
    Py_ssize_t place = 0;
    int failed = dropped == NULL;
    while (!failed && PyDict_Next(table, &place, &key, &value)) { /* plain values: nothing runs when they are compared */
        int needed = holds(args[1], also, key);
        failed = needed < 0 || (!needed && PyList_Append(dropped, key) < 0);
    }
    for (Py_ssize_t n = 0; !failed && n < PyList_GET_SIZE(dropped); n++)
        failed = PyDict_DelItem(table, PyList_GET_ITEM(dropped, n)) < 0;
    Py_XDECREF(dropped);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

/* Adds the storage of an alias, which the call says in the place of a base: see `of_alias`. */
static int
add_alias(PyObject *call, PyObject *storages)
{
    int64_t base;
    Py_ssize_t size = PyBytes_GET_SIZE(call), place = size - (TAIL - 1) * (Py_ssize_t)sizeof base;
    if (place < 0)
        return 0;
    memcpy(&base, PyBytes_AS_STRING(call) + place, sizeof base);
    if (base >= NONE)
        return 0;
    PyObject *storage = PyLong_FromLongLong(-2 - base);
    int failed = storage == NULL || PySet_Add(storages, storage) < 0;
    Py_XDECREF(storage);
    return failed ? -1 : 0;
}

static PyObject *
add_aliases(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (expect(nargs, 2) < 0)
        return NULL;
    PyObject *others = PyDict_New(), *tensor, *kept;
    Py_ssize_t place = 0;
    int failed = others == NULL;
    while (!failed && PyDict_Next(args[0], &place, &tensor, &kept)) {
        if (PyBytes_CheckExact(kept)) {
            failed = add_alias(kept, args[1]) < 0;
            continue;
        }
        for (Py_ssize_t n = 0; !failed && n < PyTuple_GET_SIZE(kept); n++) {
            PyObject *item = PyTuple_GET_ITEM(kept, n), *call = PyTuple_GET_ITEM(item, 1);
            failed = (PyBytes_CheckExact(call) ? add_alias(call, args[1])
                                               : PyDict_SetItem(others, PyTuple_GET_ITEM(item, 0), call)) < 0;
        }
    }
    if (failed)
        Py_CLEAR(others);
    return others;
}

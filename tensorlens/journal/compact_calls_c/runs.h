/* Divides batches into runs of compact calls, and runs into calls. */

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

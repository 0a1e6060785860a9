/* Finds the tensors that calls name. */

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

/* Reads truths and numbers of Python objects, and makes tuples. */

/* Returns the truth of an object and drops the reference to it. */
static int
truth(PyObject *value)
{
    int answer = value == NULL ? -1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return answer;
}

/* Sets `result` to a number and drops the reference to it. */
static int
number(PyObject *value, int64_t *result)
{
    if (value == NULL)
        return -1;
    if (!PyLong_CheckExact(value)) {
        Py_DECREF(value);
        PyErr_SetString(PyExc_TypeError, "no number");
        return -1;
    }
    *result = PyLong_AsLongLong(value);
    Py_DECREF(value);
    return *result == -1 && PyErr_Occurred() ? -1 : 0;
}

/* Returns a tuple of new references; NULL if one of them is NULL. */
static PyObject *
tuple_with(Py_ssize_t count, PyObject **items)
{
    PyObject *tuple = PyTuple_New(count);
    int whole = tuple != NULL;
    for (Py_ssize_t n = 0; n < count; n++) {
        whole &= items[n] != NULL;
        if (tuple == NULL)
            Py_XDECREF(items[n]);
        else
            PyTuple_SET_ITEM(tuple, n, items[n]);
    }
    if (!whole)
        Py_CLEAR(tuple);
    return tuple;
}

/* Does the same with numbers, strings and such tuples: the garbage collector need not walk them. */
static PyObject *
plain_tuple(Py_ssize_t count, PyObject **items)
{
    PyObject *tuple = tuple_with(count, items);
    if (tuple != NULL && count > 0) /* the empty one is Python's */
        PyObject_GC_UnTrack(tuple);
    return tuple;
}

/* Reads the rows of tensors and storages. */

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

/* Reads the gradients of steps at which nothing is new, for `SteadySteps` of the training statistics. */

enum { MAIN_MEMORY = 0, FLOAT = 6, DOUBLE = 7, BOOLEAN = 11 }; /* as PyTorch numbers devices and dtypes */
enum { MAX_MARKED = 1 << 16 };                                  /* elements: PyTorch may use several threads for more */

/* Returns the gradients of what a step has found, if these are the parameters with the given ids, and all gradients are
   plain tensors of one dtype and device; else None. Its arguments: what `found` returns, and a tuple of ids. */
static PyObject *
alike_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyList_CheckExact(arguments[0]) || !PyTuple_CheckExact(arguments[1]))
        return PyErr_Format(PyExc_TypeError, "alike() takes a list and a tuple");
    Py_ssize_t size = PyTuple_GET_SIZE(arguments[1]);
    int is_alike = PyList_GET_SIZE(arguments[0]) == size;
    PyObject *gradients = is_alike ? PyList_New(size) : NULL;
    Kind first = {0}, kind;
    for (Py_ssize_t n = 0; gradients != NULL && n < size; n++) {
        PyObject *found = PyList_GET_ITEM(arguments[0], n), *gradient = PyTuple_GET_ITEM(found, 3);
        is_alike = PyObject_RichCompareBool(PyTuple_GET_ITEM(found, 1), PyTuple_GET_ITEM(arguments[1], n), Py_EQ) == 1
                   && is_tensor(self, gradient) && is_plain(gradient) && read_kind(gradient, n ? &kind : &first) == 0
                   && (n == 0 || memcmp(&kind, &first, sizeof kind) == 0);
        if (is_alike)
            PyList_SET_ITEM(gradients, n, Py_NewRef(gradient));
        else
            Py_CLEAR(gradients);
    }
    return gradients == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : gradients;
}

/* Finds the memory of a tensor in main memory, and its size if it is no larger than others are: 0 if it is not found. */
static int
find_elements(FastPath *self, PyObject *tensor, Kind *kind, Shape *shape, void **address)
{
    if (!is_tensor(self, tensor) || !is_plain(tensor) || read_kind(tensor, kind) < 0 || kind->device != MAIN_MEMORY
        || read_shape(tensor, shape) < 0 || shape->dimensions < 0)
        return 0;
    return truth(PyObject_CallOneArg(is_contiguous, tensor)) == 1 && read_address(tensor, address) == 0 && *address;
}

/* Sets the marks of the elements of a gradient that are not zero. Returns whether it did: only small ones are for C. Its
   arguments: a tensor of booleans, and the gradient. */
static PyObject *
mark_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "mark() takes two tensors");
    Kind kinds[2];
    Shape shapes[2];
    void *addresses[2];
    for (int n = 0; n < 2; n++)
        if (!find_elements(self, arguments[n], &kinds[n], &shapes[n], &addresses[n]))
            return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    int64_t size = 1;
    for (int64_t n = 0; n < shapes[0].dimensions && size <= MAX_MARKED; n++)
        size *= shapes[0].sizes[n];
    if (size > MAX_MARKED || !is_same_shape(&shapes[0], &shapes[1]) || kinds[0].dtype != BOOLEAN)
        Py_RETURN_FALSE;
    unsigned char *restrict marks = addresses[0];
    const float *restrict floats = addresses[1];
    const double *restrict doubles = addresses[1];
    if (kinds[1].dtype == FLOAT)
        for (int64_t n = 0; n < size; n++)
            marks[n] |= floats[n] != 0;
    else if (kinds[1].dtype == DOUBLE)
        for (int64_t n = 0; n < size; n++)
            marks[n] |= doubles[n] != 0;
    else
        Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}

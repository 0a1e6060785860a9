/* Takes the addresses of PyTorch's functions from `native.py`, and answers what it compares. */

/* Takes the addresses of PyTorch's functions, the places of a tensor in its Python object, of the version in a version
   counter and of the storage in a tensor. Of a plain tensor it notes the C++ class. */
static PyObject *
bind(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long f[10];
    PyObject *plain;
    if (!PyArg_ParseTuple(args, "O(KKKKKKKKKK)nnn", &plain, &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6], &f[7], &f[8],
                          &f[9], &torch.tensor_at, &torch.version_at, &torch.storage_at))
        return NULL;
    void *places[] = {&torch.dimensions, &torch.sizes, &torch.dtype, &torch.device, &torch.index, &torch.address,
                      &torch.nbytes, &torch.grad_enabled, &torch.next_sequence, &torch.version_counter};
    for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
        uintptr_t function = (uintptr_t)f[n];
        memcpy(places[n], &function, sizeof function);
    }
    torch.plain = **(void ***)handle_of(plain);
    Py_RETURN_NONE;
}

/* Returns what `native.py` compares with PyTorch's own answers. */
static PyObject *
facts(PyObject *Py_UNUSED(module), PyObject *tensor)
{
    int64_t version, nbytes;
    void *address;
    Shape shape;
    Kind kind;
    if (torch.nbytes(handle_of(tensor), &nbytes))
        return PyErr_Format(PyExc_RuntimeError, "a tensor without memory");
    if (read_version(tensor, &version) < 0 || read_address(tensor, &address) < 0 || read_shape(tensor, &shape) < 0
        || read_kind(tensor, &kind) < 0)
        return NULL;
    PyObject *sizes = PyList_New(0);
    for (int64_t n = 0; sizes != NULL && n < shape.dimensions; n++) {
        PyObject *size = PyLong_FromLongLong(shape.sizes[n]);
        if (size == NULL || PyList_Append(sizes, size) < 0)
            Py_CLEAR(sizes);
        Py_XDECREF(size);
    }
    return sizes == NULL ? NULL
                         : Py_BuildValue("{s:i,s:L,s:L,s:N,s:N,s:i,s:i,s:i,s:i,s:K}", "plain", is_plain(tensor), "version",
                                         (long long)version, "nbytes", (long long)nbytes, "address",
                                         PyLong_FromVoidPtr(address), "shape", sizes,
                                         "dtype", (int)kind.dtype, "device", (int)kind.device, "index", (int)kind.index,
                                         "grad_enabled", (int)torch.grad_enabled(), "sequence",
                                         (unsigned long long)torch.next_sequence());
}

/* Returns whether these bytes are at an address. */
static PyObject *
has_bytes(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyBytes_CheckExact(arguments[1]))
        return PyErr_Format(PyExc_TypeError, "has_bytes() takes an address and bytes");
    void *address = PyLong_AsVoidPtr(arguments[0]);
    if (address == NULL)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no address");
    return PyBool_FromLong(memcmp(address, PyBytes_AS_STRING(arguments[1]), PyBytes_GET_SIZE(arguments[1])) == 0);
}

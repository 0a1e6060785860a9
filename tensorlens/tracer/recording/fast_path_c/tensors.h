/* Reads facts of a tensor: its version, address, sizes, dtype and device. */

typedef struct {
    int64_t dimensions, sizes[MAX_DIMENSIONS];
} Shape;

typedef struct {
    int32_t dtype, device, index;
} Kind;

/* Returns whether a tensor has plain memory and sizes: no nested, sparse, functional or batched one. */
static int
is_plain(PyObject *tensor)
{
    void **body = *(void ***)handle_of(tensor);
    return body != NULL && *body == torch.plain;
}

/* Reads the version of a tensor. An inference tensor has none: RuntimeError. */
static int
read_version(PyObject *tensor, int64_t *version)
{
    char *counter = is_plain(tensor) ? *torch.version_counter(handle_of(tensor)) : NULL;
    if (counter == NULL)
        return number(ask(&version_of, tensor), version);
    *version = *(uint32_t *)(counter + torch.version_at);
    return 0;
}

/* Reads the version of a tensor, NONE of an inference tensor. */
static int
read_version_or_none(PyObject *tensor, int64_t *version)
{
    if (read_version(tensor, version) == 0)
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError))
        return -1;
    PyErr_Clear();
    *version = NONE;
    return 0;
}

/* Reads the address of a tensor's memory; 0 if there is none. */
static int
read_address(PyObject *tensor, void **address)
{
    if (is_plain(tensor) && torch.address(handle_of(tensor), address) == 0)
        return 0;
    PyObject *value = PyObject_CallOneArg(data_ptr, tensor);
    if (value == NULL)
        return -1;
    *address = PyLong_AsVoidPtr(value);
    Py_DECREF(value);
    return PyErr_Occurred() ? -1 : 0;
}

/* Reads the sizes of a tensor. One with too many dimensions gets -1 dimensions, which equals no other. */
static int
read_shape(PyObject *tensor, Shape *shape)
{
    int64_t *sizes = NULL;
    if (is_plain(tensor)) {
        if (torch.dimensions(handle_of(tensor), &shape->dimensions) || torch.sizes(handle_of(tensor), &sizes)
            || shape->dimensions > MAX_DIMENSIONS)
            shape->dimensions = -1;
        else
            memcpy(shape->sizes, sizes, shape->dimensions * sizeof *sizes);
        return 0;
    }
    PyObject *value = PyObject_GetAttr(tensor, s_shape); /* of a nested tensor: RuntimeError */
    shape->dimensions = value == NULL || !PyTuple_Check(value) || PyTuple_GET_SIZE(value) > MAX_DIMENSIONS
                            ? -1
                            : PyTuple_GET_SIZE(value);
    for (int64_t n = 0; n < shape->dimensions; n++)
        shape->sizes[n] = PyLong_AsLongLong(PyTuple_GET_ITEM(value, n));
    Py_XDECREF(value);
    return PyErr_Occurred() ? -1 : 0;
}

static int
is_same_shape(const Shape *one, const Shape *other)
{
    return one->dimensions == other->dimensions && one->dimensions >= 0
           && memcmp(one->sizes, other->sizes, one->dimensions * sizeof *one->sizes) == 0;
}

static int
read_kind(PyObject *tensor, Kind *kind)
{
    void *handle = handle_of(tensor);
    if (torch.dtype(handle, &kind->dtype) == 0 && torch.device(handle, &kind->device) == 0
        && torch.index(handle, &kind->index) == 0)
        return 0;
    PyErr_SetString(PyExc_RuntimeError, "a tensor without a dtype or device");
    return -1;
}

/* Counts tensors: the type `Numbers`. */

typedef struct {
    PyObject_HEAD
    long long next, due; /* `due`: the id at which `TensorIds.sweep` is called next */
} Numbers;

static PyObject *
numbers_next(Numbers *self)
{
    return PyLong_FromLongLong(self->next++);
}

static PyMemberDef numbers_members[] = {
    {"due", T_LONGLONG, offsetof(Numbers, due), 0, "the id at which dead tensors are forgotten next"}, {NULL}};

static PyTypeObject NumbersType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorlens.tracer.recording._fast_path.Numbers",
    .tp_doc = "Counts tensors.",
    .tp_basicsize = sizeof(Numbers),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)numbers_next,
    .tp_members = numbers_members,
};

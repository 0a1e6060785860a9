/* Keeps the ids of storages by address: the type `Storages`, which behaves like a dict of ints. */

typedef struct { /* of the last storage seen at an address: takes 21 to 43 bytes with the free places */
    void *key;
    int64_t mark; /* the number of the storage, and 2 more; 0: the place is free */
} Past;

static int
set_past(Table *self, void *address, int64_t storage)
{
    Past *place = (Past *)take_place(self, sizeof(Past), address);
    if (place == NULL)
        return -1;
    *place = (Past){address, storage + 2};
    return 0;
}

static PyObject *
storages_get(Table *self, PyObject *const *arguments, Py_ssize_t count)
{
    void *address = count != 2 ? NULL : PyLong_AsVoidPtr(arguments[0]);
    if (count != 2 || PyErr_Occurred())
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "get() takes an address and a default");
    Past *found = (Past *)find_place(self, sizeof(Past), address);
    return found->mark == 0 ? Py_NewRef(arguments[1]) : PyLong_FromLongLong(found->mark - 2);
}

static int
storages_assign(Table *self, PyObject *key, PyObject *value)
{
    void *address = PyLong_AsVoidPtr(key);
    int64_t storage = value == NULL ? NONE : PyLong_AsLongLong(value);
    if (PyErr_Occurred())
        return -1;
    if (address == NULL || value == NULL || storage < NONE) {
        PyErr_SetString(PyExc_TypeError, "an address is set to a storage");
        return -1;
    }
    return set_past(self, address, storage);
}

static PyObject *
storages_clear(Table *self, PyObject *Py_UNUSED(nothing))
{
    memset(self->places, 0, self->size * sizeof(Past));
    self->used = 0;
    Py_RETURN_NONE;
}

static PyObject *
storages_create(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    return make_table(type, sizeof(Past));
}

static void
storages_deallocate(Table *self)
{
    PyMem_Free(self->places);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef storages_methods[] = {
    {"get", (PyCFunction)(void (*)(void))storages_get, METH_FASTCALL, "Returns the storage at an address, or a default."},
    {"clear", (PyCFunction)storages_clear, METH_NOARGS, "Forgets all."},
    {NULL}};

static PyMappingMethods storages_mapping = {.mp_length = (lenfunc)table_length,
                                            .mp_ass_subscript = (objobjargproc)storages_assign};

static PyTypeObject StoragesType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorlens.tracer.recording._fast_path.Storages",
    .tp_doc = "Ids of storages by address.",
    .tp_basicsize = sizeof(Table),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = storages_create,
    .tp_dealloc = (destructor)storages_deallocate,
    .tp_methods = storages_methods,
    .tp_as_mapping = &storages_mapping,
};

/* Watches memory behind reads of `.data` that no node has saved, as `MemoryWatcher.watch_alias` and `is_watched` do. */

enum { OP, SITE, TENSOR, START }; /* of an `UnsavedStorage` */
enum { CPU = 0 };                 /* PyTorch's number of this kind of device */

/* Counts the uses of a C++ object, without that by its Python object if the counter says that it has one. */
static uint32_t
uses_of(const char *object)
{
    uint64_t counts = *(const uint64_t *)(object + sizeof(void *)); /* the uses are its lower half */
    return (uint32_t)counts - (uint32_t)(counts >> 63);
}

/* Returns whether no node can have saved a tensor that is no view, or its storage, which only `.data` and it use. 0 if
   that is for `is_surely_unsaved` to say. */
static int
is_unsaved(PyObject *tensor)
{
    char *body = *(char **)handle_of(tensor);
    if (!torch.storage_at || uses_of(*(char **)(body + torch.storage_at)) > 2)
        return 0;
    PyObject *base = ask(&base_of, tensor);
    Py_XDECREF(base); /* only compared: the tensor keeps it */
    if (base != Py_None)
        return base == NULL ? -1 : 0;
    uint32_t uses = uses_of(body);
    if (uses > 1)
        return 0;
    if (uses == 0)
        return 1;
    int requires_grad = truth(ask(&requires_grad_of, tensor));
    return requires_grad != 1 ? requires_grad : truth(ask(&is_leaf_of, tensor)); /* that accumulates its gradient */
}

/* Makes an `UnsavedStorage`; `tensor` and `start` may be NULL. */
static PyObject *
unsaved_storage(FastPath *self, int64_t site, PyObject *tensor, PyObject *start)
{
    PyObject *number = PyLong_FromLongLong(site);
    PyTypeObject *type = (PyTypeObject *)self->unsaved;
    PyObject *made = number == NULL || tensor == NULL || start == NULL ? NULL : type->tp_alloc(type, START + 1);
    if (made == NULL) {
        Py_XDECREF(number);
        return NULL;
    }
    PyTuple_SET_ITEM(made, OP, Py_NewRef(self->alias_op));
    PyTuple_SET_ITEM(made, SITE, number);
    PyTuple_SET_ITEM(made, TENSOR, Py_NewRef(tensor));
    PyTuple_SET_ITEM(made, START, Py_NewRef(start));
    return made;
}

/* Watches the memory of a read of `.data` that `record_alias` has recorded: 1 if done, 0 if that is for Python. */
static int
watch_unsaved(FastPath *self, Call *call, int64_t alias)
{
    if (PySet_GET_SIZE(self->uncounted) || PyList_GET_SIZE(self->guarded)
        || PyDict_GET_SIZE(self->watched) >= self->watch_due || call->kind.device != CPU)
        return 0;
    int unsaved = is_unsaved(call->inputs[0].tensor);
    if (unsaved != 1)
        return unsaved;
    PyObject *storage = PyLong_FromLongLong(call->owner.storage);
    PyObject *known = storage == NULL ? NULL : PyDict_GetItemWithError(self->watched, storage);
    int failed = PyErr_Occurred() != NULL, is_others = known != NULL && (PyObject *)Py_TYPE(known) != self->unsaved;
    if (!failed && !is_others) {
        PyObject *tensor = known ? Py_NewRef(PyTuple_GET_ITEM(known, TENSOR)) : PyLong_FromLongLong(alias);
        PyObject *start = known ? Py_NewRef(PyTuple_GET_ITEM(known, START)) : PyLong_FromVoidPtr(call->address);
        PyObject *watched = unsaved_storage(self, call->site, tensor, start);
        failed = watched == NULL || PyDict_SetItem(self->watched, storage, watched) < 0;
        Py_XDECREF(tensor);
        Py_XDECREF(start);
        Py_XDECREF(watched);
    }
    Py_XDECREF(storage);
    return failed ? -1 : !is_others;
}

/* Stops watching an `UnsavedStorage` if it has one version counter left, as `MemoryWatcher._drop_if_safe`: 1 if so. */
static int
drop_if_safe(FastPath *self, PyObject *storage, PyObject *watched)
{
    PyObject *start = Py_NewRef(PyTuple_GET_ITEM(watched, START));
    PyObject *counters = counters_method(self, start);
    int safe = counters == NULL ? -1 : PySet_GET_SIZE(counters) <= 1;
    Py_DECREF(start);
    Py_XDECREF(counters);
    if (safe == 1 && PyDict_Contains(self->watched, storage) == 1 && PyDict_DelItem(self->watched, storage) < 0)
        return -1;
    return safe;
}

/* Returns whether a call, of which a node may have saved something if it `recorded` one, is for Python because of memory
   that is watched. */
static int
is_read_of(FastPath *self, int64_t number, int recorded)
{
    PyObject *storage = PyLong_FromLongLong(number);
    PyObject *watched = storage == NULL ? NULL : PyDict_GetItemWithError(self->watched, storage);
    int answer = PyErr_Occurred() ? -1 : 0;
    if (watched != NULL && (PyObject *)Py_TYPE(watched) != self->unsaved)
        answer = recorded ? 1 : truth(PyObject_GetAttr(watched, s_may_be_saved));
    else if (watched != NULL && recorded) {
        int dropped = drop_if_safe(self, storage, watched);
        answer = dropped < 0 ? -1 : !dropped;
    }
    Py_XDECREF(storage);
    return answer;
}

/* Keeps the entries of tensors by address: the type `Table`. */

typedef struct { /* of a tensor: behaves like the tuple (reference, id, counter, storage) */
    void *key;
    PyObject *ref; /* NULL: the place is free */
    int64_t id, counter, storage;
} Entry;

static Entry *
find(const Table *table, const void *key)
{
    return (Entry *)find_place(table, sizeof(Entry), key);
}

static Entry *
entries_of(const Table *table)
{
    return (Entry *)table->places;
}

/* Sets the entry of an address. Freeing a weak reference runs no code: ours have no callback. */
static int
set_entry(Table *table, Entry entry)
{
    Entry *place = (Entry *)take_place(table, sizeof(Entry), entry.key);
    if (place == NULL)
        return -1;
    PyObject *before = place->ref;
    *place = entry;
    Py_INCREF(entry.ref);
    Py_XDECREF(before);
    return 0;
}

/* Frees a place, and moves those after it that it was in the way of. */
static void
drop_entry(Table *table, Entry *place)
{
    Entry *entries = entries_of(table);
    size_t mask = table->size - 1, hole = place - entries;
    PyObject *ref = place->ref;
    for (size_t n = (hole + 1) & mask; entries[n].ref != NULL; n = (n + 1) & mask) {
        size_t home = slot_of(table, entries[n].key);
        if (((n - home) & mask) >= ((n - hole) & mask)) {
            entries[hole] = entries[n];
            hole = n;
        }
    }
    entries[hole] = (Entry){0};
    table->used--;
    Py_DECREF(ref);
}

/* Returns the tensor of an entry, for comparing only; NULL if it is dead. */
static PyObject *
tensor_of(const Entry *entry)
{
    if (!PyWeakref_Check(entry->ref))
        return NULL;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *tensor = NULL;
    if (PyWeakref_GetRef(entry->ref, &tensor) == 1)
        Py_DECREF(tensor);
    return tensor;
#else
    PyObject *tensor = PyWeakref_GET_OBJECT(entry->ref);
    return tensor == Py_None ? NULL : tensor;
#endif
}

/* Returns an entry as a tuple. Takes a copy: a garbage collection may run here, and change the table. */
static PyObject *
tuple_of(Entry entry)
{
    PyObject *items[] = {Py_NewRef(entry.ref), PyLong_FromLongLong(entry.id), PyLong_FromLongLong(entry.counter),
                         PyLong_FromLongLong(entry.storage)};
    return tuple_with(4, items);
}

static Entry *
find_number(Table *self, PyObject *key)
{
    void *address = PyLong_AsVoidPtr(key);
    return address == NULL && PyErr_Occurred() ? NULL : find(self, address);
}

static PyObject *
table_get(Table *self, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *otherwise = count > 1 ? arguments[1] : Py_None;
    Entry *entry = count < 1 ? NULL : find_number(self, arguments[0]);
    if (entry == NULL)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "get() takes a key");
    return entry->ref == NULL ? Py_NewRef(otherwise) : tuple_of(*entry);
}

static PyObject *
table_pop(Table *self, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *value = table_get(self, arguments, count);
    Entry *entry = value == NULL ? NULL : find_number(self, arguments[0]);
    if (entry != NULL && entry->ref != NULL)
        drop_entry(self, entry);
    return value;
}

static PyObject *
table_item(Table *self, PyObject *key)
{
    Entry *entry = find_number(self, key);
    if (entry != NULL && entry->ref == NULL)
        PyErr_SetObject(PyExc_KeyError, key);
    return entry == NULL || entry->ref == NULL ? NULL : tuple_of(*entry);
}

static int
table_assign(Table *self, PyObject *key, PyObject *value)
{
    Entry *place = find_number(self, key), entry = {0};
    if (place == NULL)
        return -1;
    if (value == NULL) {
        if (place->ref != NULL)
            drop_entry(self, place);
        else
            PyErr_SetObject(PyExc_KeyError, key);
        return PyErr_Occurred() ? -1 : 0;
    }
    long long id, counter, storage;
    if (!PyArg_ParseTuple(value, "OLLL", &entry.ref, &id, &counter, &storage))
        return -1;
    entry.key = PyLong_AsVoidPtr(key);
    entry.id = id, entry.counter = counter, entry.storage = storage;
    return set_entry(self, entry);
}

/* Returns what the table holds, as a list: tuples, or pairs of the key and the tuple. */
static PyObject *
list_of(Table *self, int pairs)
{
    PyObject *list = PyList_New(0);
    for (size_t n = 0; list != NULL && n < self->size; n++) {
        if (entries_of(self)[n].ref == NULL)
            continue;
        void *key = entries_of(self)[n].key;
        PyObject *item = tuple_of(entries_of(self)[n]);
        if (item != NULL && pairs)
            item = Py_BuildValue("(NN)", PyLong_FromVoidPtr(key), item);
        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *
table_values(Table *self, PyObject *Py_UNUSED(nothing))
{
    return list_of(self, 0);
}

static PyObject *
table_items(Table *self, PyObject *Py_UNUSED(nothing))
{
    return list_of(self, 1);
}

/* Makes no tuples: of many entries these take much memory. */
static PyObject *
table_ids(Table *self, PyObject *Py_UNUSED(nothing))
{
    PyObject *found = PyList_New(0);
    for (size_t n = 0; found != NULL && n < self->size; n++) {
        if (entries_of(self)[n].ref == NULL)
            continue;
        PyObject *id = PyLong_FromLongLong(entries_of(self)[n].id);
        if (id == NULL || PyList_Append(found, id) < 0)
            Py_CLEAR(found);
        Py_XDECREF(id);
    }
    return found;
}

static PyObject *
table_drop_dead(Table *self, PyObject *Py_UNUSED(nothing))
{
    for (size_t n = 0; n < self->size;)
        if (entries_of(self)[n].ref != NULL && tensor_of(&entries_of(self)[n]) == NULL)
            drop_entry(self, &entries_of(self)[n]); /* another may be at `n` now */
        else
            n++;
    Py_RETURN_NONE;
}

/* Moves the entries of dead tensors to `Storages`, but those whose storage is among the given ones. */
static PyObject *
table_retire(Table *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !Py_IS_TYPE(arguments[0], &StoragesType) || !PyDict_Check(arguments[1]))
        return PyErr_Format(PyExc_TypeError, "retire() takes Storages and a dict");
    for (size_t n = 0; n < self->size;) {
        Entry *entry = &entries_of(self)[n];
        int keep = entry->ref == NULL || tensor_of(entry) != NULL;
        if (!keep && PyDict_GET_SIZE(arguments[1])) {
            PyObject *storage = PyLong_FromLongLong(entry->storage);
            keep = storage == NULL ? -1 : PyDict_Contains(arguments[1], storage);
            Py_XDECREF(storage);
        }
        if (keep < 0)
            return NULL;
        if (keep) {
            n++;
            continue;
        }
        if (entry->key != NULL && set_past((Table *)arguments[0], entry->key, entry->storage) < 0)
            return NULL;
        drop_entry(self, entry); /* another may be at `n` now */
    }
    Py_RETURN_NONE;
}

static PyObject *
table_create(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    return make_table(type, sizeof(Entry));
}

static void
table_deallocate(Table *self)
{
    for (size_t n = 0; self->places != NULL && n < self->size; n++)
        Py_XDECREF(entries_of(self)[n].ref);
    PyMem_Free(self->places);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef table_methods[] = {
    {"retire", (PyCFunction)(void (*)(void))table_retire, METH_FASTCALL, "Moves the entries of dead tensors to Storages."},
    {"get", (PyCFunction)(void (*)(void))table_get, METH_FASTCALL, "Returns the entry of an address, or a default."},
    {"pop", (PyCFunction)(void (*)(void))table_pop, METH_FASTCALL, "Removes the entry of an address and returns it."},
    {"values", (PyCFunction)table_values, METH_NOARGS, "Returns a list of the entries."},
    {"items", (PyCFunction)table_items, METH_NOARGS, "Returns a list of (address, entry)."},
    {"ids", (PyCFunction)table_ids, METH_NOARGS, "Returns a list of the ids of the tensors."},
    {"drop_dead", (PyCFunction)table_drop_dead, METH_NOARGS, "Removes the entries of dead tensors."},
    {NULL}};

static PyMappingMethods table_mapping = {(lenfunc)table_length, (binaryfunc)table_item, (objobjargproc)table_assign};

static PyTypeObject TableType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorlens.tracer.recording._fast_path.Table",
    .tp_doc = "Entries of tensors by address.",
    .tp_basicsize = sizeof(Table),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = table_create,
    .tp_dealloc = (destructor)table_deallocate,
    .tp_methods = table_methods,
    .tp_as_mapping = &table_mapping,
};

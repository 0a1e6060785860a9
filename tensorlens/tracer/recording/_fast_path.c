/* The fast path of `fast_path.py` and `dispatch_mode.py` in C, with the tables that it looks tensors up in.

   `dispatch_mode.py` says which calls take the fast path and why each fact is read. This file follows it step by step
   and adds nothing of its own. A call that does not fit goes to Python: before the call to `fallback` (the fast path in
   Python), after the call to `FastPathMode.finish_on_slow_path`.

   Facts of a plain tensor (sizes, version, address, ...) are read by functions of PyTorch's C interface and a few of its
   C++ ones, whose addresses `native.py` finds and tries out. So a build works with any release of PyTorch, and where a
   function is missing or answers otherwise, the lens does everything in Python.
   `tests/tracer/test_compiled_fast_path.py` compares the rows of both. Functions return -1, or NULL, with an exception
   set, unless they say otherwise. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <structmember.h>

#ifndef SOURCE
#define SOURCE "" /* the SHA-256 of this file when it was built */
#endif

enum { ALIAS = 1, READ, SLOW, ORDINARY, SIMPLE, VIEW };             /* the kinds of calls, as in ops.py */
enum { MAX_TENSORS = 16, MAX_KINDS = 2 * MAX_TENSORS }; /* of one call: tensor arguments, items for the others */
enum { MAX_DIMENSIONS = 8 };                            /* of a result whose template is kept here */
enum { MAX_TEMPLATES = 1 << 18 };                       /* kept here: more than Python makes */
enum { BUCKETS = 1 << 12 };                             /* of the templates, at first */
enum { MAX_RUN = 1 << 13 };                             /* numbers: then they are put into the rows */
enum { TEXTS = 1 << 6 };                                /* of values, kept here */
enum { LIBRARIES = 1 << 10 };                           /* code objects, kept here */
enum { SHOWN_VALUES = 6 };                              /* as in tensor_text.py */
enum { STORAGE_ROW = 10, TENSOR_ROW = 11 };             /* as in journal/row_buffer.py */
#define NONE (-1)                                       /* as in journal/rows.py */

static PyObject *s_shape, *s_dtype, *s_device, *s_sweep, *s_find_template, *s_entry, *s_finish,
    *s_note_exception, *s_is_watched, *s_tensor, *s_parameter, *s_grad, *s_is_leaf, *s_may_be_saved, *s_finish_alias;
static PyObject *data_ptr;    /* the original `Tensor.data_ptr` */
static PyObject *data_getter, *gradient_getter; /* what reads `.data` and `.grad` */
static PyObject *is_mode_enabled, *pop_mode, *push_mode; /* PyTorch's functions on the stack of modes */
static PyObject *is_inference;                           /* `torch.is_inference_mode_enabled` */

/* --- what PyTorch says of a tensor --------------------------------------------------------------------------------- */

typedef struct {
    int64_t dimensions, sizes[MAX_DIMENSIONS];
} Shape;

typedef struct {
    int32_t dtype, device, index;
} Kind;

static struct { /* see native.py */
    Py_ssize_t tensor_at, version_at; /* in the Python object of a tensor, in a version counter */
    void *plain;                      /* the C++ class of plain tensors: its virtual table */
    int32_t (*dimensions)(void *, int64_t *), (*sizes)(void *, int64_t **), (*dtype)(void *, int32_t *),
        (*device)(void *, int32_t *), (*index)(void *, int32_t *), (*address)(void *, void **),
        (*nbytes)(void *, int64_t *);
    bool (*grad_enabled)(void);
    uint64_t (*next_sequence)(void);
    char **(*version_counter)(void *);
} torch;

typedef struct { /* a property of tensors: PyTorch's own getter, also where the program has replaced the property */
    const char *name;
    getter get;
    void *closure;
} Property;

static Property version_of = {.name = "_version"}, base_of = {.name = "_base"},
                requires_grad_of = {.name = "requires_grad"}, is_leaf_of = {.name = "is_leaf"},
                retains_grad_of = {.name = "retains_grad"}, grad_of = {.name = "grad"};

static PyObject *
ask(Property *property, PyObject *tensor)
{
    return property->get(tensor, property->closure);
}

static void *
handle_of(PyObject *tensor) /* an `at::Tensor *` */
{
    return (char *)tensor + torch.tensor_at;
}

/* Returns whether a tensor has plain memory and sizes: no nested, sparse, functional or batched one. */
static int
is_plain(PyObject *tensor)
{
    void **body = *(void ***)handle_of(tensor);
    return body != NULL && *body == torch.plain;
}

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

/* --- a hash table by address ------------------------------------------------------------------------------------------- */

typedef struct { /* of a tensor: behaves like the tuple (reference, id, counter, storage) */
    void *key;
    PyObject *ref; /* NULL: the place is free */
    int64_t id, counter, storage;
} Entry;

typedef struct { /* of the last storage seen at an address: takes 21 to 43 bytes with the free places */
    void *key;
    int64_t mark; /* the number of the storage, and 2 more; 0: the place is free */
} Past;

typedef struct {
    PyObject_HEAD
    char *places; /* of entries of one kind. Each begins with the address and what is 0 in a free place */
    size_t used, size; /* `size` is a power of two, a third more than `used` at least */
} Table;

static size_t
slot_of(const Table *table, const void *key)
{
    return (size_t)(((uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u) >> 32) & (table->size - 1);
}

static inline int
is_free(const char *place)
{
    return ((void *const *)place)[1] == NULL;
}

/* Returns the place of an address, free or not. `width`: bytes of a place; a constant where it is called. */
static inline char *
find_place(const Table *table, size_t width, const void *key)
{
    size_t n = slot_of(table, key);
    while (!is_free(table->places + n * width) && *(void *const *)(table->places + n * width) != key)
        n = (n + 1) & (table->size - 1);
    return table->places + n * width;
}

static Entry *
find(const Table *table, const void *key)
{
    return (Entry *)find_place(table, sizeof(Entry), key);
}

static int
grow(Table *table, size_t width)
{
    char *before = table->places, *places = PyMem_Calloc(2 * table->size, width);
    if (places == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    size_t size = table->size;
    table->places = places;
    table->size = 2 * size;
    for (char *place = before; place < before + size * width; place += width)
        if (!is_free(place))
            memcpy(find_place(table, width, *(void **)place), place, width);
    PyMem_Free(before);
    return 0;
}

/* Returns the place of an address, which the caller fills if it is free. */
static inline char *
take_place(Table *table, size_t width, const void *key)
{
    char *place = find_place(table, width, key);
    if (!is_free(place))
        return place;
    if (4 * (table->used + 1) > 3 * table->size) {
        if (grow(table, width) < 0)
            return NULL;
        place = find_place(table, width, key);
    }
    table->used++;
    return place;
}

static PyObject *
make_table(PyTypeObject *type, size_t width)
{
    Table *self = (Table *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->size = 64;
    self->places = PyMem_Calloc(self->size, width);
    if (self->places == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static Py_ssize_t
table_length(Table *self)
{
    return (Py_ssize_t)self->used;
}

/* --- entries of tensors ------------------------------------------------------------------------------------------------ */

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

/* --- storages by address: behaves like a dict of ints -------------------------------------------------------------------- */

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

/* --- tensor ids ---------------------------------------------------------------------------------------------------- */

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

/* --- the recorder's `__torch_function__` --------------------------------------------------------------------------- */

typedef struct Template { /* of calls that one instruction makes: what must be the same in each, and what Python found */
    struct Template *next;
    uintptr_t place, outer; /* the instruction that called PyTorch; the user's, if that is a library's */
    PyObject *func, *kinds; /* `kinds` is a tuple */
    int64_t id, drawn;
    Kind kind;
    uint32_t hash;
    int8_t graph, leaf, shared, risky; /* `shared`: -1 for a kernel */
    int8_t count, dimensions, first_dimensions;
    int8_t used; /* since `make_room` was last at it */
    int64_t sizes[]; /* of the result, then of the first tensor argument */
} Template;

typedef struct { /* what is shown of the values of tensors with one shape and kind */
    Shape shape;
    Kind kind;
    PyObject *text;
} Text;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *recorder, *fallback, *call_python, *tensor_ids; /* the recorder; see compiled.py */
    PyObject *call_kinds, *codes, *user_files, *leaves, *rows, *slow_path_reasons, *watched, *guarded; /* its tables */
    Table *known, *blocks;                                                       /* those of its tensor ids */
    Numbers *numbers;
    PyObject *atoms, *risks, *note_risk, *tensor, *parameter, *only_cpu;
    PyObject *sharers, *texts; /* of `TensorIds` and tensor_ids.py */
    PyObject *handle;     /* PyTorch's `handle_torch_function` */
    Template **templates; /* `bucket_count` lists, a power of two */
    Py_ssize_t template_count, most_templates, bucket_count, next_bucket;
    int64_t *run; /* of MAX_RUN numbers: compact calls that are not in the rows yet, see `settle` */
    Py_ssize_t run_length;
    char paused; /* whether nothing is recorded */
    Kind last_kind; /* of a tensor that got its rows, with the names of its dtype and device */
    PyObject *dtype_text, *device_text;
    Text values_texts[TEXTS];
    PyCodeObject *libraries[LIBRARIES]; /* code of libraries, borrowed: `Sites` keeps it */
} FastPath;

typedef struct { /* a tensor among the arguments, as it was before the call */
    PyObject *tensor;
    int64_t id, version;
} Input;

typedef struct {
    PyObject *func, *args, *kwargs; /* borrowed; `kwargs` may be NULL */
    PyFrameObject *frame;           /* that called PyTorch */
    Input inputs[MAX_TENSORS];
    Py_ssize_t count;
    int mixed;                  /* whether a tensor is in a list, or there are keyword arguments */
    PyObject *kinds[MAX_KINDS]; /* of the other arguments: their types, or the values of bools and strings */
    Py_ssize_t kind_count;
    int64_t first; /* the sequence number before the call */
    PyObject *result;
    int64_t graph, leaf, drawn, version; /* of the result, as far as read */
    int shared;                          /* as in a template */
    Shape shape, first_shape;            /* `first_shape`: of the first tensor argument */
    Kind kind;
    void *address;
    Entry owner;             /* of the base of a view: `ref` is NULL if there is none */
    int64_t id, template_id; /* of the template that fits */
    int risky;
} Call;

static void
release(Call *call)
{
    for (Py_ssize_t n = 0; n < call->count; n++)
        Py_DECREF(call->inputs[n].tensor);
    for (Py_ssize_t n = 0; n < call->kind_count; n++)
        Py_DECREF(call->kinds[n]);
    Py_XDECREF((PyObject *)call->frame);
    Py_XDECREF(call->owner.ref);
}

static int
is_tensor(FastPath *self, PyObject *value)
{
    PyObject *kind = (PyObject *)Py_TYPE(value);
    return kind == self->tensor || kind == self->parameter;
}

/* Returns the entry of a tensor; NULL if the tensor is new. Valid until something is allocated. */
static Entry *
entry_of(FastPath *self, PyObject *tensor)
{
    Entry *entry = find(self->known, tensor);
    return entry->ref != NULL && tensor_of(entry) == tensor ? entry : NULL;
}

/* --- before the call: 0 leaves it to the fast path in Python ------------------------------------------------------ */

static int
note_tensor(FastPath *self, Call *call, PyObject *tensor)
{
    Entry *entry = call->count < MAX_TENSORS ? entry_of(self, tensor) : NULL;
    if (entry == NULL)
        return 0;
    Input *input = &call->inputs[call->count++]; /* owned from here on: reading a version may run the program's mode */
    input->tensor = Py_NewRef(tensor);
    input->id = entry->id;
    return read_version(tensor, &input->version) == 0;
}

static int
note_kind(Call *call, PyObject *kind)
{
    if (call->kind_count >= MAX_KINDS)
        return 0;
    call->kinds[call->kind_count++] = Py_NewRef(kind);
    return 1;
}

/* Notes a plain value: its position among the tensors and its type. A bool or a string is noted itself, since it may
   decide what the function computes. */
static int
note_atom(FastPath *self, Call *call, PyObject *value, Py_ssize_t before)
{
    PyObject *kind = (PyObject *)Py_TYPE(value);
    int decides = PyBool_Check(value) || PyUnicode_CheckExact(value);
    if (PySet_Contains(self->atoms, kind) != 1 || call->kind_count + 2 > MAX_KINDS)
        return 0;
    PyObject *place = PyLong_FromSsize_t(before); /* Python has one object for each small number */
    int noted = place != NULL && note_kind(call, place) && note_kind(call, decides ? value : kind);
    Py_XDECREF(place);
    return noted;
}

/* Notes a tensor or a plain value; `before` is its position, as in fast_path.py. */
static int
note_item(FastPath *self, Call *call, PyObject *value, Py_ssize_t before)
{
    return is_tensor(self, value) ? note_tensor(self, call, value) : note_atom(self, call, value, before);
}

static int
is_sequence(PyObject *value)
{
    return PyList_CheckExact(value) || PyTuple_CheckExact(value);
}

static int
note_sequences(FastPath *self, Call *call, Py_ssize_t plain)
{
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(call->args); n++) {
        PyObject *value = PyTuple_GET_ITEM(call->args, n);
        if (!is_sequence(value))
            continue;
        if (!note_kind(call, (PyObject *)Py_TYPE(value)))
            return 0;
        for (Py_ssize_t item = 0; item < PySequence_Fast_GET_SIZE(value); item++)
            if (!note_item(self, call, PySequence_Fast_GET_ITEM(value, item), call->count - plain))
                return 0;
    }
    return 1;
}

static int
note_keywords(FastPath *self, Call *call, Py_ssize_t plain)
{
    Py_ssize_t position = 0;
    PyObject *value, *name;
    if (!note_kind(call, (PyObject *)&PyList_Type))
        return 0;
    while (PyDict_Next(call->kwargs, &position, NULL, &value))
        if (!note_item(self, call, value, call->count - plain))
            return 0;
    position = 0;
    while (PyDict_Next(call->kwargs, &position, &name, NULL))
        if (!note_kind(call, name))
            return 0;
    return 1;
}

static int
note_arguments(FastPath *self, Call *call)
{
    int sequences = 0, keywords = call->kwargs != NULL && PyDict_GET_SIZE(call->kwargs) > 0;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(call->args); n++) {
        PyObject *value = PyTuple_GET_ITEM(call->args, n);
        if (is_sequence(value))
            sequences = 1;
        else if (!note_item(self, call, value, 2 * call->count + 1))
            return 0;
    }
    Py_ssize_t plain = call->count;
    if ((sequences && !note_sequences(self, call, plain)) || (keywords && !note_keywords(self, call, plain)))
        return 0;
    call->mixed = keywords || call->count > plain;
    return 1;
}

/* --- rows ------------------------------------------------------------------------------------------------------------ */

/* Puts the compact calls that wait into the rows, as one object: their numbers as bytes. Whoever writes another row, or
   takes rows out, calls it first (`RowBuffer.settle`). */
static int
settle(FastPath *self)
{
    if (self->run_length == 0)
        return 0;
    PyObject *bytes = PyBytes_FromStringAndSize((char *)self->run, self->run_length * sizeof *self->run);
    if (bytes == NULL)
        return -1;
    self->run_length = 0;
    int failed = PyList_Append(self->rows, bytes);
    Py_DECREF(bytes);
    return failed;
}

static PyObject *
settle_method(FastPath *self, PyObject *Py_UNUSED(nothing))
{
    return settle(self) < 0 ? NULL : Py_NewRef(Py_None);
}

/* Writes the row of a call: 1 if it is written. */
static int
write_row(FastPath *self, Call *call, int64_t id, int64_t base, int64_t version)
{
    if (self->run_length + 2 * MAX_TENSORS + 5 > MAX_RUN && settle(self) < 0)
        return -1;
    int64_t *end = self->run + self->run_length;
    *end++ = call->template_id;
    for (Py_ssize_t n = 0; n < call->count; n++) {
        *end++ = call->inputs[n].id;
        *end++ = call->inputs[n].version;
    }
    *end++ = id;
    *end++ = base;
    *end++ = version;
    *end++ = call->first;
    self->run_length = end - self->run;
    return 1;
}

/* Forgets dead tensors: 1 if that is done. */
static int
sweep(FastPath *self, int64_t id)
{
    PyObject *latest = PyLong_FromLongLong(id);
    int swept = latest == NULL ? -1 : truth(PyObject_CallMethodOneArg(self->tensor_ids, s_sweep, latest));
    Py_XDECREF(latest);
    return swept < 0 ? -1 : 1;
}

/* Makes a weak reference that the garbage collector need not walk: without a callback it refers to nothing. */
static PyObject *
weak_reference(PyObject *tensor)
{
    PyObject *ref = PyWeakref_NewRef(tensor, NULL);
    if (ref != NULL && Py_REFCNT(ref) == 1) /* else it is the program's, too */
        PyObject_GC_UnTrack(ref);
    return ref;
}

/* Gives the new tensor its id and writes the row of the call. Forgets dead tensors now and then. */
static int
write_new(FastPath *self, Call *call, int64_t version)
{
    PyObject *ref = weak_reference(call->result);
    if (ref == NULL)
        return -1;
    int64_t id = self->numbers->next;
    int is_view = call->owner.ref != NULL;
    Entry entry = {call->result, ref, id, is_view ? call->owner.counter : id, is_view ? call->owner.storage : id};
    int failed = set_entry(self->known, entry);
    entry.key = call->address;
    if (!failed && !is_view)
        failed = set_entry(self->blocks, entry);
    if (!failed && call->leaf) { /* a backward pass may give it a gradient */
        PyObject *number = PyLong_FromLongLong(id);
        failed = number == NULL || PyDict_SetItem(self->leaves, number, ref) < 0;
        Py_XDECREF(number);
    }
    Py_DECREF(ref);
    if (failed || write_row(self, call, id, is_view ? call->owner.id : NONE, version) < 0)
        return -1;
    self->numbers->next++;
    return id < self->numbers->due ? 1 : sweep(self, id);
}

/* --- tensors that no call returned: gradients, inputs ----------------------------------------------------------------- */

static PyObject *
find_method(FastPath *self, PyObject *tensor)
{
    Entry *entry = entry_of(self, tensor);
    return entry == NULL ? Py_NewRef(Py_None) : PyLong_FromLongLong(entry->id);
}

static PyObject *
entry_method(FastPath *self, PyObject *tensor)
{
    Entry *entry = entry_of(self, tensor);
    return entry == NULL ? Py_NewRef(Py_None) : tuple_of(*entry);
}

/* Returns whether a tensor is the first that is seen on memory of its own; sets where that is. */
static int
is_first_there(FastPath *self, PyObject *tensor, void **address)
{
    if (!is_tensor(self, tensor) || !is_plain(tensor) || read_address(tensor, address) < 0 || *address == NULL)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *base = ask(&base_of, tensor);
    Py_XDECREF(base); /* only compared: the tensor keeps it */
    if (base != Py_None)
        return base == NULL ? -1 : 0;
    Entry *there = find(self->blocks, *address);
    if (there->ref == NULL)
        return 1;
    if (tensor_of(there) != NULL)
        return 0;
    PyObject *storage = PyLong_FromLongLong(there->storage);
    int shared = storage == NULL ? -1 : PyDict_Contains(self->sharers, storage);
    Py_XDECREF(storage);
    return shared < 0 ? -1 : !shared;
}

/* Sets the names of a tensor's dtype and device, borrowed: 1 if they are known. Most tensors are of the kind of the last. */
static int
names_of(FastPath *self, PyObject *tensor, PyObject **dtype, PyObject **device)
{
    Kind kind;
    if (read_kind(tensor, &kind) < 0) {
        PyErr_Clear();
        return 0;
    }
    if (self->dtype_text == NULL || memcmp(&kind, &self->last_kind, sizeof kind)) {
        PyObject *of_dtype = PyObject_GetAttr(tensor, s_dtype), *of_device = PyObject_GetAttr(tensor, s_device);
        *dtype = of_dtype == NULL ? NULL : PyDict_GetItemWithError(self->texts, of_dtype);
        *device = of_device == NULL ? NULL : PyDict_GetItemWithError(self->texts, of_device);
        Py_XDECREF(of_dtype);
        Py_XDECREF(of_device);
        if (*dtype == NULL || *device == NULL)
            return PyErr_Occurred() ? -1 : 0;
        self->last_kind = kind;
        self->dtype_text = *dtype, self->device_text = *device; /* `texts` keeps both: it only grows */
    }
    *dtype = self->dtype_text, *device = self->device_text;
    return 1;
}

/* Returns the rows of a new tensor on new memory as one tuple; NULL without an exception if Python must make them. */
static PyObject *
rows_of(FastPath *self, PyObject *tensor, int64_t id)
{
    Shape shape;
    int64_t nbytes;
    PyObject *dtype, *device, *sizes[MAX_DIMENSIONS];
    if (read_shape(tensor, &shape) < 0 || shape.dimensions < 0 || torch.nbytes(handle_of(tensor), &nbytes)
        || names_of(self, tensor, &dtype, &device) != 1)
        return NULL;
    for (int64_t n = 0; n < shape.dimensions; n++)
        sizes[n] = PyLong_FromLongLong(shape.sizes[n]);
    PyObject *number = PyLong_FromLongLong(id);
    if (number == NULL)
        return NULL;
    PyObject *kind = (PyObject *)Py_TYPE(tensor) == self->tensor ? s_tensor : s_parameter;
    PyObject *of_storage[] = {PyLong_FromLong(STORAGE_ROW), Py_NewRef(number), PyLong_FromLongLong(nbytes)};
    PyObject *of_tensor[] = {PyLong_FromLong(TENSOR_ROW), Py_NewRef(number),  Py_NewRef(number),
                             number,                      tuple_with(shape.dimensions, sizes), Py_NewRef(dtype),
                             Py_NewRef(device),           Py_NewRef(kind),    Py_NewRef(Py_None)};
    PyObject *rows[] = {tuple_with(3, of_storage), tuple_with(9, of_tensor)};
    return tuple_with(2, rows);
}

/* Gives an id to a new tensor on memory of its own, as `TensorIds.add`. Returns its entry; None: it is for Python. */
static PyObject *
add_method(FastPath *self, PyObject *tensor)
{
    void *address;
    int first = is_first_there(self, tensor, &address);
    PyObject *ref = first == 1 ? weak_reference(tensor) : NULL;
    int64_t id = self->numbers->next++; /* taken first: what follows may collect garbage and so run other code */
    PyObject *rows = ref == NULL ? NULL : rows_of(self, tensor, id);
    if (rows == NULL) {
        self->numbers->next -= self->numbers->next == id + 1;
        Py_XDECREF(ref);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    Entry entry = {tensor, ref, id, id, id};
    int failed = settle(self) < 0 || set_entry(self->known, entry) < 0;
    entry.key = address;
    failed = failed || set_entry(self->blocks, entry) < 0 || PyList_Append(self->rows, PyTuple_GET_ITEM(rows, 0)) < 0
             || PyList_Append(self->rows, PyTuple_GET_ITEM(rows, 1)) < 0 || (id >= self->numbers->due && sweep(self, id) < 0);
    Py_DECREF(rows);
    PyObject *made = failed ? NULL : tuple_of(entry);
    Py_DECREF(ref);
    return made;
}

/* --- the leaves of a backward pass and of a step: one call for all of them -------------------------------------------- */

/* Reads the entry of a tensor; a new one gets its id. */
static int
read_entry(FastPath *self, PyObject *tensor, int64_t *id, int64_t *counter)
{
    Entry *entry = entry_of(self, tensor);
    if (entry != NULL) {
        *id = entry->id, *counter = entry->counter;
        return 0;
    }
    PyObject *made = add_method(self, tensor);
    if (made == Py_None) {
        Py_DECREF(made);
        made = PyObject_CallMethodOneArg(self->tensor_ids, s_entry, tensor);
    }
    PyObject *ref;
    long long numbers[3];
    int read = made != NULL && PyArg_ParseTuple(made, "OLLL", &ref, &numbers[0], &numbers[1], &numbers[2]);
    Py_XDECREF(made);
    *id = numbers[0], *counter = numbers[1];
    return read ? 0 : -1;
}

/* Adds the version counter of the tensor that a weak reference leads to, if it lives. */
static int
add_counter(FastPath *self, PyObject *ref, PyObject *counters)
{
    Entry entry = {.ref = ref};
    PyObject *tensor = Py_XNewRef(tensor_of(&entry));
    int64_t id, counter;
    int failed = tensor == NULL ? 0 : read_entry(self, tensor, &id, &counter);
    if (tensor != NULL && !failed) {
        PyObject *number = PyLong_FromLongLong(counter);
        failed = number == NULL ? -1 : PySet_Add(counters, number);
        Py_XDECREF(number);
    }
    Py_XDECREF(tensor);
    return failed;
}

/* Returns the version counters of the live tensors on the storage at an address, as `TensorIds.counters_at`. */
static PyObject *
counters_method(FastPath *self, PyObject *address)
{
    Entry *latest = find_number(self->blocks, address);
    PyObject *counters = latest == NULL ? NULL : PySet_New(NULL);
    if (counters == NULL || latest->ref == NULL)
        return counters;
    PyObject *last = Py_NewRef(latest->ref), *storage = PyLong_FromLongLong(latest->storage);
    PyObject *others = storage == NULL ? NULL : PyDict_GetItemWithError(self->sharers, storage);
    PyObject *refs = others == NULL ? NULL : PySequence_Tuple(others);
    int failed = PyErr_Occurred() != NULL || add_counter(self, last, counters) < 0;
    for (Py_ssize_t n = 0; !failed && refs != NULL && n < PyTuple_GET_SIZE(refs); n++)
        failed = add_counter(self, PyTuple_GET_ITEM(refs, n), counters) < 0;
    Py_DECREF(last);
    Py_XDECREF(storage);
    Py_XDECREF(refs);
    if (failed)
        Py_CLEAR(counters);
    return counters;
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

static PyObject *
gradient_of(FastPath *self, PyObject *tensor)
{
    return is_tensor(self, tensor) ? ask(&grad_of, tensor) : PyObject_GetAttr(tensor, s_grad);
}

/* Returns whether two numbers of a tuple, after its first item, are these. */
static int
has_numbers(PyObject *tuple, int64_t id, int64_t version)
{
    return PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 1)) == id && PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 2)) == version;
}

/* Returns the text of a gradient's values. If they are too many to be shown, their shape and kind decide it. */
static PyObject *
values_text(FastPath *self, PyObject *gradient, PyObject *values_of)
{
    Text now = {0};
    int64_t count = 1;
    if (!is_tensor(self, gradient) || !is_plain(gradient) || read_shape(gradient, &now.shape) < 0
        || now.shape.dimensions < 0 || read_kind(gradient, &now.kind) < 0) {
        PyErr_Clear();
        return PyObject_CallOneArg(values_of, gradient);
    }
    uint64_t hash = (uint32_t)now.kind.dtype;
    for (int64_t n = 0; n < now.shape.dimensions; n++) {
        count *= now.shape.sizes[n];
        hash = (hash ^ (uint64_t)now.shape.sizes[n]) * 0x9E3779B97F4A7C15u;
    }
    if (count <= SHOWN_VALUES)
        return PyObject_CallOneArg(values_of, gradient);
    Text *kept = &self->values_texts[(hash ^ hash >> 32) & (TEXTS - 1)];
    if (kept->text == NULL || !is_same_shape(&kept->shape, &now.shape) || memcmp(&kept->kind, &now.kind, sizeof now.kind)) {
        now.text = PyObject_CallOneArg(values_of, gradient);
        if (now.text == NULL)
            return NULL;
        PyObject *before = kept->text;
        *kept = now;
        Py_XDECREF(before);
    }
    return Py_NewRef(kept->text);
}

typedef struct { /* the gradients of leaves before a backward pass, or those and what the pass has changed */
    PyObject *before, *values_of; /* a dict; the function that reads values */
    PyObject *found;              /* a dict like `before`; or a list of the changes */
    PyObject *seen;               /* the leaves in `before` that still have a gradient; NULL: `found` is a dict */
} Gradients;

/* Notes the gradient of a leaf. */
static int
note_gradient(FastPath *self, PyObject *number, PyObject *gradient, Gradients *noted)
{
    int64_t id, counter, version;
    if (read_entry(self, gradient, &id, &counter) < 0 || read_version_or_none(gradient, &version) < 0)
        return -1;
    PyObject *known = PyDict_GetItemWithError(noted->before, number);
    if (known == NULL && PyErr_Occurred())
        return -1;
    if (known != NULL && noted->seen != NULL && PySet_Add(noted->seen, number) < 0)
        return -1;
    if (known != NULL && has_numbers(known, id, version))
        return noted->seen == NULL ? PyDict_SetItem(noted->found, number, known) : 0;
    PyObject *text = values_text(self, gradient, noted->values_of), *made = NULL;
    if (text == NULL)
        return -1;
    if (noted->seen == NULL) {
        PyObject *items[] = {text, PyLong_FromLongLong(id), PyLong_FromLongLong(version)};
        made = tuple_with(3, items);
    } else {
        int64_t before = known == NULL ? NONE : PyLong_AsLongLong(PyTuple_GET_ITEM(known, 2));
        int same = known != NULL && PyLong_AsLongLong(PyTuple_GET_ITEM(known, 1)) == id;
        PyObject *write = same && version > before
                              ? Py_BuildValue("(LLL)", (long long)id, (long long)before, (long long)version)
                              : Py_NewRef(Py_None);
        PyObject *items[] = {Py_NewRef(number), Py_NewRef(known == NULL ? Py_None : PyTuple_GET_ITEM(known, 0)), text,
                             write, PyLong_FromLongLong(id)};
        made = tuple_with(5, items);
    }
    int failed = made == NULL              ? -1
                 : noted->seen == NULL ? PyDict_SetItem(noted->found, number, made)
                                           : PyList_Append(noted->found, made);
    Py_XDECREF(made);
    return failed;
}

/* Returns whether a backward pass may give a tensor a gradient. */
static int
may_have_gradient(PyObject *tensor)
{
    int leaf = truth(ask(&is_leaf_of, tensor));
    return leaf ? leaf : truth(ask(&retains_grad_of, tensor));
}

/* Notes the gradient of every leaf that is alive and has one. */
static int
note_gradients(FastPath *self, PyObject *by_number, Gradients *noted)
{
    PyObject *leaves = PyDict_Items(by_number);
    int failed = leaves == NULL ? -1 : 0;
    for (Py_ssize_t n = 0; !failed && n < PyList_GET_SIZE(leaves); n++) {
        PyObject *number = PyTuple_GET_ITEM(PyList_GET_ITEM(leaves, n), 0);
        PyObject *tensor = PyObject_CallNoArgs(PyTuple_GET_ITEM(PyList_GET_ITEM(leaves, n), 1));
        failed = tensor == NULL ? -1 : 0;
        if (tensor == Py_None) {
            if (PyDict_DelItem(by_number, number) < 0) { /* another thread may have removed it */
                failed = !PyErr_ExceptionMatches(PyExc_KeyError);
                if (!failed)
                    PyErr_Clear();
            }
        } else if (!failed) {
            int may = may_have_gradient(tensor);
            PyObject *gradient = may == 1 ? gradient_of(self, tensor) : NULL;
            failed = may < 0 || (may && gradient == NULL) ? -1 : 0;
            if (gradient != NULL && gradient != Py_None)
                failed = note_gradient(self, number, gradient, noted);
            Py_XDECREF(gradient);
        }
        Py_XDECREF(tensor);
    }
    Py_XDECREF(leaves);
    return failed;
}

static int
are_of_gradients(PyObject *const *arguments, Py_ssize_t count)
{
    if (count == 3 && PyDict_Check(arguments[0]) && PyDict_Check(arguments[1]))
        return 1;
    PyErr_SetString(PyExc_TypeError, "two dicts and a function are missing");
    return 0;
}

/* Reads the gradients of leaves, as `_gradients` in patches/backward.py. Its arguments: the leaves, the gradients before,
   the function that reads values. */
static PyObject *
gradients_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (!are_of_gradients(arguments, count))
        return NULL;
    Gradients noted = {arguments[1], arguments[2], PyDict_New(), NULL};
    if (noted.found != NULL && note_gradients(self, arguments[0], &noted))
        Py_CLEAR(noted.found);
    return noted.found;
}

/* Notes the gradients of leaves that are gone: of those in `before`, the leaves that still live and are not `seen`. */
static int
note_gone(PyObject *leaves, Gradients *noted)
{
    PyObject *number, *known, *gone = PyList_New(0);
    Py_ssize_t position = 0;
    int failed = gone == NULL;
    while (!failed && PyDict_Next(noted->before, &position, &number, &known)) {
        int seen = PySet_Contains(noted->seen, number), lives = seen == 0 ? PyDict_Contains(leaves, number) : 0;
        failed = seen < 0 || lives < 0;
        if (failed || !lives)
            continue;
        PyObject *change = PyTuple_Pack(5, number, PyTuple_GET_ITEM(known, 0), Py_None, Py_None, Py_None);
        failed = change == NULL || PyList_Append(gone, change) < 0;
        Py_XDECREF(change);
    }
    failed = failed || PyList_SetSlice(noted->found, 0, 0, gone) < 0; /* they come first */
    Py_XDECREF(gone);
    return failed ? -1 : 0;
}

/* Returns what a backward pass has changed of the gradients of leaves, as `_changes` in patches/backward.py. Takes the
   same arguments as `gradients`. */
static PyObject *
changes_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (!are_of_gradients(arguments, count))
        return NULL;
    Gradients noted = {arguments[1], arguments[2], PyList_New(0), PySet_New(NULL)};
    PyObject *changes = NULL;
    if (noted.found != NULL && noted.seen != NULL && note_gradients(self, arguments[0], &noted) == 0
        && (PySet_GET_SIZE(noted.seen) == PyDict_GET_SIZE(noted.before) || note_gone(arguments[0], &noted) == 0))
        changes = PyList_AsTuple(noted.found);
    Py_XDECREF(noted.found);
    Py_XDECREF(noted.seen);
    return changes;
}

/* Describes a parameter as a step finds it: see `FoundParameter` in patches/optimizer_state.py. */
static PyObject *
found_parameter(FastPath *self, PyObject *parameter)
{
    int64_t id, counter, of_gradient = 0, version = NONE, ignored;
    PyObject *gradient = NULL;
    if (read_entry(self, parameter, &id, &counter) < 0 || (gradient = gradient_of(self, parameter)) == NULL)
        return NULL;
    int has = gradient != Py_None;
    if (has && (read_entry(self, gradient, &of_gradient, &ignored) < 0 || read_version_or_none(gradient, &version) < 0)) {
        Py_DECREF(gradient);
        return NULL;
    }
    PyObject *items[] = {Py_NewRef(parameter), PyLong_FromLongLong(id), PyLong_FromLongLong(counter), gradient,
                         has ? PyLong_FromLongLong(of_gradient) : Py_NewRef(Py_None), PyLong_FromLongLong(version)};
    return tuple_with(6, items);
}

static PyObject *
found_method(FastPath *self, PyObject *parameters)
{
    PyObject *list = PySequence_List(parameters), *found = list == NULL ? NULL : PyList_New(0);
    for (Py_ssize_t n = 0; found != NULL && n < PyList_GET_SIZE(list); n++) {
        PyObject *made = found_parameter(self, PyList_GET_ITEM(list, n));
        if (made == NULL || PyList_Append(found, made) < 0)
            Py_CLEAR(found);
        Py_XDECREF(made);
    }
    Py_XDECREF(list);
    return found;
}

/* Returns what `write_stepped` takes of a parameter that a step has found; NULL without an exception if the step must be
   recorded call by call. */
static PyObject *
before_step(FastPath *self, PyObject *found)
{
    PyObject *parameter = PyTuple_GET_ITEM(found, 0), *gradient = PyTuple_GET_ITEM(found, 3);
    int64_t version;
    if (!is_tensor(self, parameter) || truth(ask(&is_leaf_of, parameter)) != 1
        || (gradient != Py_None && !is_tensor(self, gradient)) || read_version_or_none(parameter, &version) < 0
        || version == NONE)
        return NULL;
    PyObject *numbers[] = {Py_NewRef(PyTuple_GET_ITEM(found, 1)), PyLong_FromLongLong(version),
                           Py_NewRef(PyTuple_GET_ITEM(found, 4)), Py_NewRef(PyTuple_GET_ITEM(found, 5))};
    PyObject *inputs = tuple_with(gradient == Py_None ? 2 : 4, numbers);
    if (gradient == Py_None) {
        Py_DECREF(numbers[2]);
        Py_DECREF(numbers[3]);
    }
    PyObject *items[] = {Py_NewRef(parameter), Py_NewRef(PyTuple_GET_ITEM(found, 2)), inputs};
    return tuple_with(3, items);
}

static PyObject *
before_method(FastPath *self, PyObject *found)
{
    PyObject *list = PyList_CheckExact(found) ? PyList_New(0) : PyErr_Format(PyExc_TypeError, "before() takes a list");
    for (Py_ssize_t n = 0; list != NULL && n < PyList_GET_SIZE(found); n++) {
        PyObject *made = before_step(self, PyList_GET_ITEM(found, n));
        if (made == NULL || PyList_Append(list, made) < 0)
            Py_CLEAR(list);
        Py_XDECREF(made);
    }
    return list == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : list;
}

/* Returns the leaves in a list that have a gradient, as `_zero_grad` in patches/optimizer_step.py. */
static PyObject *
with_gradient_method(FastPath *self, PyObject *tensors)
{
    PyObject *list = PySequence_List(tensors), *found = list == NULL ? NULL : PyList_New(0);
    for (Py_ssize_t n = 0; found != NULL && n < PyList_GET_SIZE(list); n++) {
        PyObject *tensor = PyList_GET_ITEM(list, n), *gradient;
        int leaf = truth(is_tensor(self, tensor) ? ask(&is_leaf_of, tensor) : PyObject_GetAttr(tensor, s_is_leaf));
        if (leaf == 0)
            continue;
        gradient = leaf < 0 ? NULL : gradient_of(self, tensor);
        if (gradient == NULL || (gradient != Py_None && PyList_Append(found, tensor) < 0))
            Py_CLEAR(found);
        Py_XDECREF(gradient);
    }
    Py_XDECREF(list);
    return found;
}

/* Returns the tensors in a list that have no id yet. */
static PyObject *
new_method(FastPath *self, PyObject *tensors)
{
    PyObject *list = PySequence_List(tensors), *found = list == NULL ? NULL : PyList_New(0);
    for (Py_ssize_t n = 0; found != NULL && n < PyList_GET_SIZE(list); n++) {
        PyObject *tensor = PyList_GET_ITEM(list, n);
        if (entry_of(self, tensor) == NULL && PyList_Append(found, tensor) < 0)
            Py_CLEAR(found);
    }
    Py_XDECREF(list);
    return found;
}

typedef struct { /* finds the call templates of one step */
    PyObject *find;         /* a function of the number of inputs and of whether the leaf requires grad */
    int64_t known[3][2]; /* what it has returned; 0: it was not asked yet */
} Finder;

static int
find_number_of(Finder *finder, Py_ssize_t inputs, PyObject *leaf, int64_t *id)
{
    PyObject *answer = ask(&requires_grad_of, leaf);
    if (answer == NULL)
        return -1;
    int64_t *known = &finder->known[inputs][answer == Py_True];
    if (*known == 0) {
        PyObject *count = PyLong_FromSsize_t(inputs), *made = NULL;
        if (count != NULL)
            made = PyObject_CallFunctionObjArgs(finder->find, count, answer, NULL);
        Py_XDECREF(count);
        Py_DECREF(answer);
        if (number(made, known) < 0)
            return -1;
    } else
        Py_DECREF(answer);
    *id = *known;
    return 0;
}

/* Writes a compact call that returned its first input or nothing. `inputs`: (id, version) of each, flat. */
static int
write_leaf(FastPath *self, int64_t template, const int64_t *inputs, Py_ssize_t count, int64_t version, int64_t sequence)
{
    if (self->run_length + count + 5 > MAX_RUN && settle(self) < 0)
        return -1;
    int64_t *end = self->run + self->run_length;
    *end++ = template;
    for (Py_ssize_t n = 0; n < count; n++)
        *end++ = inputs[n];
    *end++ = inputs[0];
    *end++ = NONE;
    *end++ = version;
    *end++ = sequence;
    self->run_length = end - self->run;
    return 0;
}

/* Writes the call of one parameter if the step has changed it: see `OptimizerSteps._record_step`. */
static int
write_stepped(FastPath *self, PyObject *before, PyObject *recorded, Finder *finder)
{
    PyObject *parameter = PyTuple_GET_ITEM(before, 0), *counter = PyTuple_GET_ITEM(before, 1),
             *numbers = PyTuple_GET_ITEM(before, 2);
    Py_ssize_t count = PyTuple_GET_SIZE(numbers);
    int64_t inputs[4], version, template;
    for (Py_ssize_t n = 0; n < count && n < 4; n++)
        inputs[n] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, n));
    if (PyErr_Occurred() || read_version(parameter, &version) < 0)
        return -1;
    if (version == inputs[1])
        return 0;
    int seen = PySet_Contains(recorded, counter);
    if (seen)
        return seen < 0 ? -1 : 0;
    if (PySet_Add(recorded, counter) < 0 || find_number_of(finder, count / 2, parameter, &template) < 0)
        return -1;
    return write_leaf(self, template, inputs, count, version, (int64_t)torch.next_sequence());
}

/* Writes the calls of the parameters that a step has changed. Its arguments: a list of (parameter, version counter,
   (id, version) of it and of its gradient, flat), and a function that finds the call template. */
static PyObject *
stepped_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyList_CheckExact(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "stepped() takes a list and a function");
    PyObject *recorded = PySet_New(NULL);
    Finder finder = {.find = arguments[1]};
    int failed = recorded == NULL;
    for (Py_ssize_t n = 0; !failed && n < PyList_GET_SIZE(arguments[0]); n++)
        failed = write_stepped(self, PyList_GET_ITEM(arguments[0], n), recorded, &finder);
    Py_XDECREF(recorded);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* Writes the calls of the leaves in a list that have no gradient any more: see `OptimizerSteps.dropped`. */
static PyObject *
dropped_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyList_CheckExact(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "dropped() takes a list and a function");
    Finder finder = {.find = arguments[1]};
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(arguments[0]); n++) {
        PyObject *leaf = PyList_GET_ITEM(arguments[0], n), *gradient = gradient_of(self, leaf);
        int64_t access[2], counter, template;
        Py_XDECREF(gradient); /* only compared */
        if (gradient == NULL)
            return NULL;
        if (gradient != Py_None)
            continue;
        if (read_entry(self, leaf, &access[0], &counter) < 0 || read_version_or_none(leaf, &access[1]) < 0
            || find_number_of(&finder, 1, leaf, &template) < 0
            || write_leaf(self, template, access, 2, access[1], (int64_t)torch.next_sequence()) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* --- call templates -------------------------------------------------------------------------------------------------- */

/* Returns the address of the instruction that a frame is at. */
static uintptr_t
place_of(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code); /* the frame keeps it */
    return (uintptr_t)code + PyFrame_GetLasti(frame);
}

/* Returns whether a frame is the user's; -1 if that is not known: `FastPathMode.find_template` finds out. */
static int
is_users(FastPath *self, PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code); /* the frame keeps it */
    PyCodeObject **library = &self->libraries[((uintptr_t)code >> 5) & (LIBRARIES - 1)];
    if (*library == code)
        return 0;
    PyObject *address = PyLong_FromVoidPtr(code);
    PyObject *offsets = address == NULL ? NULL : PyDict_GetItemWithError(self->codes, address);
    Py_XDECREF(address);
    if (offsets == Py_None)
        *library = code;
    return offsets == NULL ? -1 : offsets != Py_None;
}

/* Forgets which code is a library's: some of it has got sites. */
static PyObject *
forget_libraries_method(FastPath *self, PyObject *Py_UNUSED(nothing))
{
    memset(self->libraries, 0, sizeof self->libraries);
    Py_RETURN_NONE;
}

/* Appends the place that a frame is at, if its file is the user's: 1 if that is known. */
static int
note_place(FastPath *self, PyFrameObject *frame, PyObject *places)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *by_user = PyDict_GetItemWithError(self->user_files, code->co_filename), *place = NULL;
    int known = by_user != NULL;
    if (by_user == Py_True) {
        place = Py_BuildValue("(Oi)", code, PyFrame_GetLasti(frame));
        known = place != NULL && PyList_Append(places, place) == 0;
    }
    Py_XDECREF(place);
    Py_DECREF(code);
    return known;
}

/* Returns the site of an instruction of the user's code, a new reference; NULL without an exception if it has none yet. */
static PyObject *
known_site(FastPath *self, PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *address = PyLong_FromVoidPtr(code), *offset = PyLong_FromLong(PyFrame_GetLasti(frame)), *site = NULL;
    Py_DECREF(code);
    if (address != NULL && offset != NULL) {
        PyObject *offsets = PyDict_GetItemWithError(self->codes, address);
        site = offsets == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(offsets, offset));
    }
    Py_XDECREF(address);
    Py_XDECREF(offset);
    return site;
}

/* Returns the site of the user's innermost frame, as `Sites.site_of`; None: it is for Python. */
static PyObject *
site_method(FastPath *self, PyObject *innermost)
{
    PyFrameObject *frame = PyFrame_Check(innermost) ? (PyFrameObject *)Py_NewRef(innermost) : NULL;
    PyObject *site = NULL;
    while (frame != NULL) {
        int users = is_users(self, frame);
        PyFrameObject *caller = users == 0 ? PyFrame_GetBack(frame) : NULL;
        if (users == 1)
            site = known_site(self, frame);
        Py_DECREF(frame);
        frame = caller;
    }
    return site == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : site;
}

/* Returns the place of the user's frames, as `place_of` in frames/code_between_calls.py; None: it is for Python. */
static PyObject *
place_method(FastPath *self, PyObject *innermost)
{
    PyObject *places = PyList_New(0), *tuple = NULL;
    PyFrameObject *frame = PyFrame_Check(innermost) ? (PyFrameObject *)Py_NewRef(innermost) : NULL;
    int known = places != NULL;
    while (known && frame != NULL) {
        int users = is_users(self, frame);
        known = users == 1 ? note_place(self, frame, places) : users == 0;
        PyFrameObject *caller = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
    }
    Py_XDECREF((PyObject *)frame);
    if (known && PyList_Reverse(places) == 0)
        tuple = PyList_AsTuple(places);
    Py_XDECREF(places);
    return tuple == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : tuple;
}

/* Returns the address of the user's innermost instruction; 0 if it is not known. */
static uintptr_t
user_place(FastPath *self, PyFrameObject *innermost)
{
    PyFrameObject *frame = (PyFrameObject *)Py_NewRef((PyObject *)innermost);
    while (frame != NULL) {
        int found = is_users(self, frame);
        uintptr_t place = found == 1 ? place_of(frame) : 0;
        PyFrameObject *caller = found == 0 ? PyFrame_GetBack(frame) : NULL;
        Py_DECREF(frame);
        if (found)
            return place;
        frame = caller;
    }
    return 0;
}

static uint32_t
hash_of(const Call *call, uintptr_t place, uintptr_t outer)
{
    uint64_t hash = place * 0x9E3779B97F4A7C15u ^ outer * 0xC2B2AE3D27D4EB4Fu ^ (uintptr_t)call->func;
    for (int64_t n = 0; n < call->shape.dimensions; n++)
        hash = (hash ^ (uint64_t)call->shape.sizes[n]) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(hash ^ hash >> 32);
}

static int64_t *
sizes_of_first(Template *template)
{
    return template->sizes + template->dimensions;
}

static int
has_sizes(const Shape *shape, int64_t dimensions, const int64_t *sizes)
{
    return dimensions >= 0 && shape->dimensions == dimensions
           && memcmp(shape->sizes, sizes, dimensions * sizeof *sizes) == 0;
}

/* Returns whether a template fits a call. Kinds are the same objects where they are equal, except long strings. */
static int
fits(Template *template, const Call *call)
{
    if (template->func != call->func || template->graph != call->graph || template->count != call->count
        || template->leaf != call->leaf || template->drawn != call->drawn || template->shared != call->shared
        || memcmp(&template->kind, &call->kind, sizeof call->kind)
        || !has_sizes(&call->shape, template->dimensions, template->sizes)
        || PyTuple_GET_SIZE(template->kinds) != call->kind_count)
        return 0;
    if (call->shared >= 0 && call->count
        && !has_sizes(&call->first_shape, template->first_dimensions, sizes_of_first(template)))
        return 0;
    for (Py_ssize_t n = 0; n < call->kind_count; n++)
        if (PyTuple_GET_ITEM(template->kinds, n) != call->kinds[n])
            return 0;
    return 1;
}

static int
take_template(FastPath *self, Call *call, uintptr_t place, uintptr_t outer)
{
    Template *template = self->templates[hash_of(call, place, outer) & (self->bucket_count - 1)];
    while (template != NULL && !(template->place == place && template->outer == outer && fits(template, call)))
        template = template->next;
    if (template == NULL)
        return 0;
    template->used = 1;
    call->template_id = template->id;
    call->risky = template->risky;
    return 1;
}

static void
drop_template(FastPath *self, Template **link)
{
    Template *template = *link;
    *link = template->next;
    self->template_count--;
    Py_DECREF(template->func);
    Py_DECREF(template->kinds);
    PyMem_Free(template);
}

static void
drop_templates(FastPath *self)
{
    for (Py_ssize_t n = 0; n < self->bucket_count; n++)
        while (self->templates[n] != NULL)
            drop_template(self, &self->templates[n]);
}

/* Drops templates of the next buckets that were not used since the last time. A few for each new one: so no call waits. */
static void
make_room(FastPath *self)
{
    while (self->template_count > 0 && self->template_count >= self->most_templates) {
        Template **link = &self->templates[self->next_bucket++ & (self->bucket_count - 1)];
        while (*link != NULL)
            if ((*link)->used) {
                (*link)->used = 0;
                link = &(*link)->next;
            } else
                drop_template(self, link);
    }
}

/* Makes room for as many templates again. */
static int
add_buckets(FastPath *self)
{
    Py_ssize_t size = 2 * self->bucket_count;
    Template **buckets = PyMem_Calloc(size, sizeof *buckets);
    if (buckets == NULL)
        return -1;
    for (Py_ssize_t n = 0; n < self->bucket_count; n++)
        for (Template *template = self->templates[n], *next; template != NULL; template = next) {
            next = template->next;
            template->next = buckets[template->hash & (size - 1)];
            buckets[template->hash & (size - 1)] = template;
        }
    PyMem_Free(self->templates);
    self->templates = buckets;
    self->bucket_count = size;
    return 0;
}

/* Keeps what Python found for later calls of the same kind. */
static int
keep_template(FastPath *self, Call *call, PyObject *kinds, uintptr_t place, uintptr_t outer)
{
    make_room(self);
    int first_dimensions = call->shared >= 0 && call->count ? (int)call->first_shape.dimensions : -1;
    size_t sizes = sizeof(int64_t) * call->shape.dimensions,
           first_sizes = first_dimensions < 0 ? 0 : sizeof(int64_t) * first_dimensions;
    Template *template = PyMem_Malloc(sizeof *template + sizes + first_sizes);
    if (template == NULL || (self->template_count >= self->bucket_count && add_buckets(self) < 0)) {
        PyMem_Free(template);
        PyErr_NoMemory();
        return -1;
    }
    uint32_t hash = hash_of(call, place, outer);
    Template **bucket = &self->templates[hash & (self->bucket_count - 1)];
    *template = (Template){.next = *bucket,
                           .place = place,
                           .outer = outer,
                           .func = Py_NewRef(call->func),
                           .kinds = Py_NewRef(kinds),
                           .id = call->template_id,
                           .drawn = call->drawn,
                           .kind = call->kind,
                           .hash = hash,
                           .graph = (int8_t)call->graph,
                           .leaf = (int8_t)call->leaf,
                           .shared = (int8_t)call->shared,
                           .risky = (int8_t)call->risky,
                           .count = (int8_t)call->count,
                           .dimensions = (int8_t)call->shape.dimensions,
                           .first_dimensions = (int8_t)first_dimensions};
    memcpy(template->sizes, call->shape.sizes, sizes);
    memcpy(sizes_of_first(template), call->first_shape.sizes, first_sizes);
    *bucket = template;
    self->template_count++;
    return 0;
}

static PyObject *
kinds_of(const Call *call)
{
    PyObject *kinds = PyTuple_New(call->kind_count);
    for (Py_ssize_t n = 0; kinds != NULL && n < call->kind_count; n++)
        PyTuple_SET_ITEM(kinds, n, Py_NewRef(call->kinds[n]));
    return kinds;
}

/* Returns the key of a call, as dispatch_mode.py describes it. */
static PyObject *
key_of(FastPath *self, Call *call, PyObject *kinds)
{
    int is_kernel = call->shared < 0;
    PyObject *shape = PyObject_GetAttr(call->result, s_shape), *dtype = PyObject_GetAttr(call->result, s_dtype),
             *device = is_kernel && self->only_cpu == Py_True ? Py_NewRef(Py_None)
                                                              : PyObject_GetAttr(call->result, s_device),
             *first_shape = call->count && !is_kernel ? PyObject_GetAttr(call->inputs[0].tensor, s_shape)
                                                      : Py_NewRef(Py_None),
             *key = NULL;
    if (shape != NULL && dtype != NULL && device != NULL && first_shape != NULL)
        key = Py_BuildValue(is_kernel ? "(OOLLOLOOO)" : "(OOLLOLOOOOO)", call->func, kinds, (long long)call->graph,
                            (long long)(2 * call->count + 1), call->leaf ? Py_True : Py_False, (long long)call->drawn,
                            shape, dtype, device, call->shared > 0 ? Py_True : Py_False, first_shape);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    Py_XDECREF(device);
    Py_XDECREF(first_shape);
    return key;
}

/* Returns the kinds in the key of a template, which many share, if they are the same objects as those of the call. */
static PyObject *
shared_kinds(PyObject *key, PyObject *kinds)
{
    PyObject *shared = PyTuple_GET_ITEM(key, 1);
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(kinds); n++)
        if (PyTuple_GET_ITEM(shared, n) != PyTuple_GET_ITEM(kinds, n))
            return kinds;
    Py_INCREF(shared);
    Py_DECREF(kinds);
    return shared;
}

/* Asks `FastPathMode.find_template`. */
static int
find_template(FastPath *self, Call *call, PyObject **kinds, int written)
{
    PyObject *key = key_of(self, call, *kinds), *template = NULL;
    if (key != NULL) {
        PyObject *arguments[] = {self->recorder, (PyObject *)call->frame, key, call->result, written ? Py_True : Py_False};
        template = PyObject_VectorcallMethod(s_find_template, arguments, 5, NULL);
    }
    Py_XDECREF(key);
    if (template == NULL)
        return -1;
    call->template_id = PyLong_AsLongLong(PyTuple_GET_ITEM(template, 1));
    call->risky = PyTuple_GET_ITEM(template, 2) == Py_True;
    *kinds = shared_kinds(PyTuple_GET_ITEM(template, 0), *kinds);
    Py_DECREF(template);
    return 0;
}

/* Sets the template of a call. */
static int
set_template(FastPath *self, Call *call, int written)
{
    uintptr_t place = place_of(call->frame), outer = 0;
    if (take_template(self, call, place, 0))
        return 0;
    int users = is_users(self, call->frame);
    if (users == 0) {
        outer = user_place(self, call->frame);
        if (outer && take_template(self, call, place, outer))
            return 0;
    }
    if (PyErr_Occurred())
        return -1;
    PyObject *kinds = kinds_of(call);
    int failed = kinds == NULL || find_template(self, call, &kinds, written) < 0;
    if (!failed && (users == 1 || outer) && call->shape.dimensions >= 0)
        failed = keep_template(self, call, kinds, place, outer) < 0;
    Py_XDECREF(kinds);
    return failed ? -1 : 0;
}

/* --- after the call: 1 if its row is written, 0 for the slow path ---------------------------------------------------- */

static int
note_risk(FastPath *self, Call *call)
{
    PyObject *kwargs = call->kwargs == NULL ? PyDict_New() : Py_NewRef(call->kwargs);
    if (kwargs == NULL)
        return -1;
    int noted = truth(PyObject_CallFunctionObjArgs(self->note_risk, self->recorder, call->func, call->args, kwargs, NULL));
    Py_DECREF(kwargs);
    return noted < 0 ? -1 : 0;
}

/* Records a kernel (SIMPLE or VIEW), as `__torch_function__` does in fast_path.py. */
static int
record_kernel(FastPath *self, Call *call, int call_kind)
{
    call->drawn = (int64_t)torch.next_sequence() - call->first;
    call->graph = call->drawn ? 2 : !torch.grad_enabled(); /* 2: its derivative was recorded: the result requires grad */
    call->shared = -1;
    if (call->graph == 1 && read_version(call->result, &call->version) < 0) /* an inference tensor has none */
        return -1;
    if (call->drawn > 1)
        return 0;
    if (read_shape(call->result, &call->shape) < 0 || read_kind(call->result, &call->kind) < 0
        || set_template(self, call, 0) < 0)
        return -1;
    if (call->graph == 2 && call->risky && note_risk(self, call) < 0)
        return -1;
    if (call_kind == SIMPLE) {
        if (read_address(call->result, &call->address) < 0)
            return -1;
        return call->address == NULL ? 0 : write_new(self, call, 0);
    }
    PyObject *base = call->count == 0 ? NULL : ask(&base_of, call->result);
    Entry *owner = base == NULL ? NULL : entry_of(self, base);
    if (owner != NULL) {
        call->owner = *owner;
        Py_INCREF(call->owner.ref);
    }
    Py_XDECREF(base);
    if (PyErr_Occurred())
        return -1;
    /* a view has the version of its base */
    return owner == NULL ? 0 : write_new(self, call, call->inputs[0].version);
}

/* Returns whose versions have moved: 0 for none, 1 for the first input alone, else 2 or 3. */
static int
moved(Call *call)
{
    int found = 0;
    for (Py_ssize_t n = 0; n < call->count; n++) {
        int64_t version;
        if (read_version(call->inputs[n].tensor, &version) < 0)
            return -1;
        if (version != call->inputs[n].version)
            found |= n == 0 ? 1 : 2;
    }
    return found;
}

/* Reads what the graph says of an ordinary call's result: 1 if that is as usual. */
static int
read_graph(Call *call, int written)
{
    int requires_grad = truth(ask(&requires_grad_of, call->result)), enabled = torch.grad_enabled();
    if (requires_grad < 0)
        return -1;
    call->graph = requires_grad ? (enabled ? 2 : 3) : !enabled;
    if (!requires_grad)
        return 1;
    int leaf = truth(ask(&is_leaf_of, call->result));
    if (leaf < 0)
        return -1;
    call->leaf = leaf;
    if (leaf)
        return written || !call->drawn;
    if (!call->drawn)
        return 0;
    if (!written)
        return 1;
    int retains_grad = truth(ask(&retains_grad_of, call->result));
    return retains_grad < 0 ? -1 : !retains_grad;
}

/* Reads whose memory a new tensor has: 1 if its base's, or memory of its own. */
static int
read_owner(FastPath *self, Call *call, PyObject *base)
{
    if (base == Py_None) {
        if (read_address(call->result, &call->address) < 0)
            return -1;
        Entry *there = find(self->blocks, call->address);
        return there->ref == NULL || tensor_of(there) == NULL;
    }
    PyObject *entry = PyObject_CallMethodOneArg(self->tensor_ids, s_entry, base), *ref;
    long long id, counter, storage;
    int read = entry != NULL && PyArg_ParseTuple(entry, "OLLL", &ref, &id, &counter, &storage);
    if (read)
        call->owner = (Entry){base, Py_NewRef(ref), id, counter, storage};
    Py_XDECREF(entry);
    return read ? 1 : -1;
}

/* Records a call that returned one plain tensor: a new one, or its first argument after a write. See
   `FastPathMode.record_ordinary`. */
static int
record_ordinary(FastPath *self, Call *call)
{
    int risky = PyDict_Contains(self->risks, call->func);
    if (risky < 0 || (risky && note_risk(self, call) < 0))
        return -1;
    call->drawn = (int64_t)torch.next_sequence() - call->first;
    if (read_version(call->result, &call->version) < 0)
        return -1;
    int written = entry_of(self, call->result) != NULL, changed = moved(call);
    if (changed < 0)
        return -1;
    if (changed != written || (written && call->inputs[0].tensor != call->result))
        return 0;
    int usual = read_graph(call, written);
    if (usual != 1)
        return usual;
    PyObject *base = ask(&base_of, call->result);
    int owned = base == NULL ? -1 : written || call->leaf ? base == Py_None : 1;
    if (owned == 1 && !written)
        owned = read_owner(self, call, base);
    Py_XDECREF(base);
    if (owned != 1)
        return owned;
    call->shared = written || call->owner.ref != NULL;
    if ((call->count && read_shape(call->inputs[0].tensor, &call->first_shape) < 0)
        || read_shape(call->result, &call->shape) < 0 || read_kind(call->result, &call->kind) < 0
        || set_template(self, call, written) < 0)
        return -1;
    return written ? write_row(self, call, call->inputs[0].id, NONE, call->version) : write_new(self, call, call->version);
}

/* Returns whether the inference mode is on. */
static int
is_inferring(void)
{
    return torch.grad_enabled() ? 0 : truth(PyObject_CallNoArgs(is_inference));
}

/* Returns whether the user's own line made a call. */
static int
is_by_user(FastPath *self, Call *call)
{
    PyCodeObject *code = PyFrame_GetCode(call->frame);
    int by_user = PyDict_GetItemWithError(self->user_files, code->co_filename) == Py_True;
    Py_DECREF(code);
    return by_user;
}

/* Records a read of `.grad` that returned a tensor, as `PropertyReads._record_read`. */
static int
record_read(FastPath *self, Call *call)
{
    int64_t id, counter;
    int requires_grad = truth(ask(&requires_grad_of, call->result)), inferring = is_inferring();
    if (requires_grad < 0 || inferring < 0)
        return -1;
    if (requires_grad || inferring || !is_plain(call->result))
        return 0;
    call->drawn = 0, call->shared = 1, call->graph = !torch.grad_enabled();
    if (read_entry(self, call->result, &id, &counter) < 0 || read_version(call->result, &call->version) < 0
        || read_shape(call->inputs[0].tensor, &call->first_shape) < 0 || read_shape(call->result, &call->shape) < 0
        || read_kind(call->result, &call->kind) < 0 || set_template(self, call, 0) < 0)
        return -1;
    return write_row(self, call, id, NONE, call->version);
}

/* --- the slow path --------------------------------------------------------------------------------------------------- */

static PyObject *
tensors_of(Call *call)
{
    PyObject *tensors = PyList_New(call->count);
    for (Py_ssize_t n = 0; tensors != NULL && n < call->count; n++)
        PyList_SET_ITEM(tensors, n, Py_NewRef(call->inputs[n].tensor));
    return tensors;
}

static PyObject *
accesses_of(Call *call)
{
    PyObject *accesses = PyList_New(2 * call->count);
    for (Py_ssize_t n = 0; accesses != NULL && n < 2 * call->count; n++) {
        Input *input = &call->inputs[n / 2];
        PyObject *item = PyLong_FromLongLong(n % 2 ? input->version : input->id);
        if (item == NULL)
            Py_CLEAR(accesses);
        else
            PyList_SET_ITEM(accesses, n, item);
    }
    return accesses;
}

/* Returns whether an argument is in watched memory that a node may have saved: before the call, or in it. */
static int
touches_saved(FastPath *self, Call *call)
{
    int found = 0, recorded = (int64_t)torch.next_sequence() != call->first;
    for (Py_ssize_t n = 0; n < call->count && found == 0; n++) {
        Entry *entry = entry_of(self, call->inputs[n].tensor);
        PyObject *storage = entry == NULL ? NULL : PyLong_FromLongLong(entry->storage);
        PyObject *memory = storage == NULL ? NULL : PyDict_GetItemWithError(self->watched, storage);
        Py_XDECREF(storage);
        if (memory != NULL)
            found = recorded ? 1 : truth(PyObject_GetAttr(memory, s_may_be_saved));
    }
    return PyErr_Occurred() ? -1 : found;
}

/* Returns whether a call concerns memory that can be written past a version counter. */
static int
is_watched(FastPath *self, Call *call)
{
    if (PyDict_GET_SIZE(self->watched) == 0)
        return 0;
    if (PyList_GET_SIZE(self->guarded) == 0) {
        int touches = touches_saved(self, call);
        if (touches != 1)
            return touches;
    }
    PyObject *tensors = tensors_of(call), *first = PyLong_FromLongLong(call->first), *answer = NULL;
    if (tensors != NULL && first != NULL) {
        PyObject *arguments[] = {self->recorder, tensors, first, (PyObject *)call->frame};
        answer = PyObject_VectorcallMethod(s_is_watched, arguments, 4, NULL);
    }
    Py_XDECREF(tensors);
    Py_XDECREF(first);
    return truth(answer);
}

static int
finish(FastPath *self, Call *call)
{
    PyObject *tensors = tensors_of(call), *accesses = accesses_of(call), *first = PyLong_FromLongLong(call->first);
    PyObject *called = Py_BuildValue("(OOOO)", call->func, call->args, call->kwargs ? call->kwargs : Py_None, call->frame);
    PyObject *done = NULL;
    if (tensors != NULL && accesses != NULL && called != NULL && first != NULL) {
        PyObject *arguments[] = {self->recorder, called, call->result, tensors, accesses, first};
        done = PyObject_VectorcallMethod(s_finish, arguments, 6, NULL);
    }
    Py_XDECREF(tensors);
    Py_XDECREF(accesses);
    Py_XDECREF(called);
    Py_XDECREF(first);
    return truth(done) < 0 ? -1 : 0;
}

/* Records the exception that is set and leaves it set. */
static void
note_exception(FastPath *self, Call *call)
{
    PyObject *kind, *error, *traceback, *done = NULL;
    PyErr_Fetch(&kind, &error, &traceback);
    PyErr_NormalizeException(&kind, &error, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(error, traceback);
    PyObject *accesses = accesses_of(call);
    if (accesses != NULL) {
        PyObject *arguments[] = {self->recorder, error, call->func, accesses, (PyObject *)call->frame};
        done = PyObject_VectorcallMethod(s_note_exception, arguments, 5, NULL);
    }
    Py_XDECREF(accesses);
    if (done == NULL && !PyErr_ExceptionMatches(PyExc_Exception)) { /* a Ctrl-C during the recording */
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
        return;
    }
    Py_XDECREF(done);
    PyErr_Restore(kind, error, traceback); /* replaces an internal error: the stack may be full */
}

/* Returns whether the exception that is set is the user's: a Ctrl-C, or raised by a signal handler while Python code of
   the recorder ran. Only one with a traceback can be. */
static int
is_user_error(void)
{
    PyObject *kind, *error, *traceback, *guard, *answer = NULL;
    if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_Exception))
        return PyErr_Occurred() != NULL;
    PyErr_Fetch(&kind, &error, &traceback);
    if (traceback != NULL) {
        PyErr_NormalizeException(&kind, &error, &traceback);
        PyException_SetTraceback(error, traceback);
        guard = PyImport_ImportModule("tensorlens.tracer.isolation.guard");
        answer = guard == NULL ? NULL : PyObject_CallMethod(guard, "raised_by_handler", "O", error);
        Py_XDECREF(guard);
        PyErr_Clear();
    }
    int is_users = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Restore(kind, error, traceback);
    return is_users;
}

static int
record(FastPath *self, Call *call, int call_kind)
{
    int outcome = 0;
    if ((PyObject *)Py_TYPE(call->result) == self->tensor && PySet_GET_SIZE(self->slow_path_reasons) == 0
        && is_watched(self, call) == 0)
        outcome = call_kind == READ                       ? record_read(self, call)
                  : call_kind == ORDINARY || call->mixed ? record_ordinary(self, call)
                                                         : record_kernel(self, call, call_kind);
    if (PyErr_Occurred()) { /* the result has no version or memory, or the call no template */
        if (is_user_error())
            return -1;
        PyErr_Clear();
    }
    return outcome == 1 ? 0 : finish(self, call);
}

/* Makes the call. A Python function gets a frame of the recorder around it, which the patches of warnings expect. */
static PyObject *
make_call(FastPath *self, Call *call)
{
    if (!PyFunction_Check(call->func))
        return PyObject_Call(call->func, call->args, call->kwargs);
    return PyObject_CallFunctionObjArgs(self->call_python, call->func, call->args, call->kwargs, NULL);
}

/* Returns whether a read of `.grad` is one of a plain tensor by the user's own line, while nothing else must be written.
   PyTorch warns of other tensors, and the patches of warnings expect a frame of the recorder then. */
static int
is_plain_read(FastPath *self, Call *call)
{
    PyObject *source = PyTuple_GET_SIZE(call->args) == 1 ? PyTuple_GET_ITEM(call->args, 0) : Py_None;
    return is_tensor(self, source) && (call->kwargs == NULL || PyDict_GET_SIZE(call->kwargs) == 0)
           && PySet_GET_SIZE(self->slow_path_reasons) == 0 && is_by_user(self, call) && may_have_gradient(source) == 1;
}

/* Makes a call and records it. Sets `made` to 0 if the call is for Python. */
static PyObject *
call_and_record(FastPath *self, PyObject *const *arguments, Py_ssize_t count, int call_kind, int *made)
{
    Call call; /* not all of it is set to 0, for speed */
    call.func = arguments[0], call.args = arguments[2];
    call.kwargs = count == 4 && arguments[3] != Py_None ? arguments[3] : NULL;
    call.frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    call.count = call.kind_count = 0;
    call.leaf = 0;
    call.owner.ref = NULL;
    PyObject *result = NULL;
    if (call_kind == READ)
        call.func = gradient_getter; /* PyTorch passes a new object each time */
    *made = call.frame != NULL && (call.kwargs == NULL || PyDict_CheckExact(call.kwargs))
            && (call_kind != READ || is_plain_read(self, &call)) && note_arguments(self, &call);
    if (*made) {
        call.first = (int64_t)torch.next_sequence();
        result = call.result = make_call(self, &call);
        if (result == NULL)
            note_exception(self, &call);
        else if (record(self, &call, call_kind) < 0)
            Py_CLEAR(result);
    }
    release(&call);
    return result;
}

/* --- a read of `.data` ------------------------------------------------------------------------------------------------ */

/* Returns whether a weak reference to a live tensor is in an entry or a list. */
static int
is_alive(PyObject *ref)
{
    Entry entry = {.ref = ref};
    return tensor_of(&entry) != NULL;
}

/* Notes the tensor of an entry as the last one seen on its storage, as `TensorIds._note_at_address`. */
static int
note_at_address(FastPath *self, Entry entry)
{
    Entry *before = find(self->blocks, entry.key);
    if (before->ref == NULL || before->storage != entry.storage)
        return set_entry(self->blocks, entry);
    PyObject *last = Py_NewRef(before->ref), *storage = PyLong_FromLongLong(entry.storage), *live = PyList_New(0);
    PyObject *known = storage == NULL ? NULL : PyDict_GetItemWithError(self->sharers, storage);
    int failed = storage == NULL || live == NULL || PyErr_Occurred() || (known != NULL && !PyList_CheckExact(known));
    for (Py_ssize_t n = 0; !failed && known != NULL && n < PyList_GET_SIZE(known); n++)
        if (is_alive(PyList_GET_ITEM(known, n)))
            failed = PyList_Append(live, PyList_GET_ITEM(known, n)) < 0;
    if (!failed && is_alive(last))
        failed = PyList_Append(live, last) < 0;
    failed = failed || PyDict_SetItem(self->sharers, storage, live) < 0 || set_entry(self->blocks, entry) < 0;
    Py_DECREF(last);
    Py_XDECREF(storage);
    Py_XDECREF(live);
    return failed ? -1 : 0;
}

/* Returns whether a read of `.data` can be recorded here: of a known plain tensor at the beginning of its storage. Sets
   `call` for it. */
static int
begin_alias(FastPath *self, Call *call)
{
    if (PyTuple_GET_SIZE(call->args) != 1 || call->kwargs != NULL || PySet_GET_SIZE(self->slow_path_reasons))
        return 0;
    PyObject *source = PyTuple_GET_ITEM(call->args, 0);
    Entry *entry = is_tensor(self, source) && is_plain(source) ? entry_of(self, source) : NULL;
    if (entry == NULL || entry->storage == NONE || read_address(source, &call->address) < 0 || call->address == NULL)
        return 0;
    Entry *there = find(self->blocks, call->address);
    if (there->ref == NULL || there->storage != entry->storage)
        return 0;
    call->owner = *entry;
    call->owner.ref = NULL; /* only its storage is asked for */
    call->graph = !torch.grad_enabled();
    if (is_inferring() != 0)
        return 0;
    return note_tensor(self, call, source);
}

/* Records a read of `.data` that returned, as `PropertyReads._record_alias`: 1 if its row is written. */
static int
record_alias(FastPath *self, Call *call)
{
    PyObject *result = call->result;
    if ((PyObject *)Py_TYPE(result) != self->tensor || !is_plain(result))
        return 0;
    call->first = (int64_t)torch.next_sequence();
    call->drawn = 0, call->shared = 1;
    if (read_version(call->inputs[0].tensor, &call->inputs[0].version) < 0 || read_version(result, &call->version) < 0
        || read_shape(call->inputs[0].tensor, &call->first_shape) < 0 || read_shape(result, &call->shape) < 0
        || read_kind(result, &call->kind) < 0 || set_template(self, call, 0) < 0)
        return -1;
    PyObject *ref = weak_reference(result);
    int64_t id = self->numbers->next, storage = call->owner.storage;
    if (ref == NULL)
        return -1;
    Entry entry = {result, ref, id, id, storage};
    int failed = set_entry(self->known, entry);
    self->numbers->next++;
    entry.key = call->address;
    failed = failed || note_at_address(self, entry) < 0;
    Py_DECREF(ref);
    if (failed || write_row(self, call, id, -2 - storage, call->version) < 0)
        return -1;
    return id < self->numbers->due ? 1 : sweep(self, id);
}

/* Makes a read of `.data` and records it. Sets `made` to 0 if the read is for Python. */
static PyObject *
read_alias(FastPath *self, PyObject *const *arguments, Py_ssize_t count, int *made)
{
    Call call;
    call.func = data_getter, call.args = arguments[2]; /* PyTorch passes a new object each time */
    call.kwargs = count == 4 && arguments[3] != Py_None && PyDict_GET_SIZE(arguments[3]) ? arguments[3] : NULL;
    call.frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    call.count = call.kind_count = 0;
    call.leaf = 0;
    call.owner.ref = NULL;
    PyObject *result = NULL;
    *made = call.frame != NULL && begin_alias(self, &call);
    if (*made)
        result = call.result = PyObject_Call(call.func, call.args, call.kwargs);
    if (result != NULL) {
        int recorded = record_alias(self, &call);
        if (PyErr_Occurred() && !is_user_error())
            PyErr_Clear(); /* the alias has no version, or the call no template */
        if (!PyErr_Occurred()) {
            PyObject *values[] = {self->recorder, call.func, call.inputs[0].tensor, result, (PyObject *)call.frame,
                                  recorded == 1 ? Py_True : Py_False};
            Py_XDECREF(PyObject_VectorcallMethod(s_finish_alias, values, 6, NULL));
        }
        if (PyErr_Occurred())
            Py_CLEAR(result);
    }
    release(&call);
    return result;
}

static PyObject *
fast_path_call(PyObject *callable, PyObject *const *arguments, size_t flags, PyObject *names)
{
    FastPath *self = (FastPath *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *found = NULL;
    if (names == NULL && (count == 3 || count == 4) && PyTuple_CheckExact(arguments[2]))
        found = PyDict_GetItemWithError(self->call_kinds, arguments[0]);
    long call_kind = found == NULL ? SLOW : PyLong_AsLong(found);
    if (call_kind != SLOW && !self->paused) {
        int made = 0;
        PyObject *result = call_kind == ALIAS ? read_alias(self, arguments, count, &made)
                                              : call_and_record(self, arguments, count, (int)call_kind, &made);
        if (made)
            return result;
    }
    if (is_user_error())
        return NULL;
    PyErr_Clear(); /* an attribute could not be read: the fallback tries again */
    return PyObject_Vectorcall(self->fallback, arguments, flags, names);
}

/* --- a Python function of PyTorch that gives its call to the mode ------------------------------------------------------ */

/* Returns what PyTorch's `handle_torch_function` passes on as the types; NULL without an exception if an argument may
   have a `__torch_function__` of its own. */
static PyObject *
types_of(FastPath *self, PyObject *relevant)
{
    int plain = 0;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(relevant); n++) {
        PyObject *value = PyTuple_GET_ITEM(relevant, n), *kind = (PyObject *)Py_TYPE(value);
        plain |= kind == self->tensor;
        if (!is_tensor(self, value) && PySet_Contains(self->atoms, kind) != 1)
            return NULL;
    }
    return plain ? PyTuple_Pack(1, self->tensor) : PyTuple_New(0);
}

/* Returns the keyword arguments of a call, `count` positional ones before them, as a dict. */
static PyObject *
keywords_of(PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *keywords = PyDict_New();
    for (Py_ssize_t n = 0; keywords != NULL && names != NULL && n < PyTuple_GET_SIZE(names); n++)
        if (PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, n), arguments[count + n]) < 0)
            Py_CLEAR(keywords);
    return keywords;
}

/* Makes a call with this mode off the stack, as PyTorch does. NULL without an exception: another mode is innermost. */
static PyObject *
call_below_mode(FastPath *self, PyObject *const *call)
{
    PyObject *mode = PyObject_CallNoArgs(pop_mode), *result = NULL, *kind, *error, *traceback;
    if (mode == NULL)
        return NULL;
    if (mode == (PyObject *)self)
        result = fast_path_call((PyObject *)self, call, 4, NULL);
    PyErr_Fetch(&kind, &error, &traceback);
    PyObject *done = PyObject_CallOneArg(push_mode, mode);
    if (done != NULL)
        PyErr_Restore(kind, error, traceback);
    else
        Py_CLEAR(result);
    Py_XDECREF(done);
    Py_DECREF(mode);
    return result;
}

/* Returns whether a function is one of PyTorch's wrappers, such as `Tensor.__rsub__`: these have a `__wrapped__`. They may
   answer NotImplemented to the mode, and are asked again then. */
static int
is_wrapper(PyObject *func)
{
    PyObject *dict = PyFunction_Check(func) ? ((PyFunctionObject *)func)->func_dict : NULL;
    return dict != NULL && PyDict_GET_SIZE(dict) > 0;
}

/* Does what PyTorch's `handle_torch_function` does, which a Python function of PyTorch calls with itself, the arguments
   that may have a `__torch_function__`, and all arguments. That function itself takes the calls that are for other
   modes or for such arguments, too. */
static PyObject *
handle_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *types = NULL, *args = NULL, *kwargs = NULL, *result = NULL;
    if (count >= 2 && PyTuple_CheckExact(arguments[1]) && !is_wrapper(arguments[0])
        && truth(PyObject_CallNoArgs(is_mode_enabled)) == 1)
        types = types_of(self, arguments[1]);
    if (types != NULL && (args = PyTuple_New(count - 2)) != NULL) {
        for (Py_ssize_t n = 2; n < count; n++)
            PyTuple_SET_ITEM(args, n - 2, Py_NewRef(arguments[n]));
        kwargs = keywords_of(arguments, count, names);
    }
    if (kwargs != NULL) {
        PyObject *call[] = {arguments[0], types, args, kwargs};
        result = call_below_mode(self, call);
        if (result == Py_NotImplemented)
            Py_CLEAR(result);
    }
    Py_XDECREF(types);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    if (result == NULL && !PyErr_Occurred())
        return PyObject_Vectorcall(self->handle, arguments, count, names);
    return result;
}

/* --- the type ------------------------------------------------------------------------------------------------------- */

static PyObject **
members_of(FastPath *self, Py_ssize_t *count)
{
    *count = (PyObject **)&self->templates - &self->recorder;
    return &self->recorder;
}

static int
traverse(PyObject *object, visitproc visit, void *arg)
{
    FastPath *self = (FastPath *)object;
    Py_ssize_t count;
    PyObject **members = members_of(self, &count);
    for (Py_ssize_t n = 0; n < count; n++)
        Py_VISIT(members[n]);
    for (Py_ssize_t n = 0; self->templates != NULL && n < self->bucket_count; n++)
        for (Template *template = self->templates[n]; template != NULL; template = template->next) {
            Py_VISIT(template->func);
            Py_VISIT(template->kinds);
        }
    return 0;
}

static void
deallocate(PyObject *object)
{
    FastPath *self = (FastPath *)object;
    Py_ssize_t count;
    PyObject **members = members_of(self, &count);
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t n = 0; n < count; n++)
        Py_XDECREF(members[n]);
    if (self->templates != NULL)
        drop_templates(self);
    for (size_t n = 0; n < TEXTS; n++)
        Py_XDECREF(self->values_texts[n].text);
    PyMem_Free(self->templates);
    PyMem_Free(self->run);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"recorder", "fallback", "call_python", "tensor_ids", "call_kinds", "codes", "user_files", "leaves", "rows",
                            "slow_path_reasons", "watched", "guarded", "known", "blocks", "numbers", "atoms", "risks",
                            "note_risk", "tensor", "parameter", "only_cpu", "sharers", "texts", "handle", NULL};
    PyObject *m[24];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OOOOO!O!O!O!O!O!O!O!O!O!O!O!O!OOOOO!O!O", names, &m[0], &m[1], &m[2],
                                     &m[3], &PyDict_Type, &m[4], &PyDict_Type, &m[5], &PyDict_Type, &m[6], &PyDict_Type,
                                     &m[7], &PyList_Type, &m[8], &PySet_Type, &m[9], &PyDict_Type, &m[10], &PyList_Type,
                                     &m[11], &TableType, &m[12], &TableType, &m[13], &NumbersType, &m[14], &PySet_Type,
                                     &m[15], &PyDict_Type, &m[16], &m[17], &m[18], &m[19], &m[20], &PyDict_Type, &m[21],
                                     &PyDict_Type, &m[22], &m[23]))
        return NULL;
    if (torch.version_counter == NULL)
        return PyErr_Format(PyExc_RuntimeError, "bind() was not called");
    FastPath *self = (FastPath *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    Py_ssize_t count;
    PyObject **members = members_of(self, &count);
    for (Py_ssize_t n = 0; n < count; n++)
        members[n] = Py_NewRef(m[n]);
    self->vectorcall = fast_path_call;
    self->bucket_count = BUCKETS;
    self->most_templates = MAX_TEMPLATES;
    self->templates = PyMem_Calloc(BUCKETS, sizeof *self->templates);
    self->run = PyMem_Malloc(MAX_RUN * sizeof *self->run);
    if (self->templates == NULL || self->run == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static PyMemberDef members[] = {
    {"most_templates", T_PYSSIZET, offsetof(FastPath, most_templates), 0, "how many call templates are kept, at most"},
    {"template_count", T_PYSSIZET, offsetof(FastPath, template_count), READONLY, "how many call templates are kept"},
    {NULL}};

static PyObject *
pause_method(FastPath *self, PyObject *paused)
{
    self->paused = paused == Py_True;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"settle", (PyCFunction)settle_method, METH_NOARGS, "Puts the calls that wait into the rows."},
    {"find", (PyCFunction)find_method, METH_O, "Returns the id of a known tensor, or None."},
    {"entry", (PyCFunction)entry_method, METH_O, "Returns the entry of a known tensor, or None."},
    {"add", (PyCFunction)add_method, METH_O, "Gives an id to a new tensor on new memory, or returns None."},
    {"gradients", (PyCFunction)(void (*)(void))gradients_method, METH_FASTCALL, "Reads the gradients of leaves."},
    {"changes", (PyCFunction)(void (*)(void))changes_method, METH_FASTCALL, "Returns what a pass has changed."},
    {"counters_at", (PyCFunction)counters_method, METH_O, "Returns the version counters of the tensors at an address."},
    {"with_gradient", (PyCFunction)with_gradient_method, METH_O, "Returns the leaves that have a gradient."},
    {"new", (PyCFunction)new_method, METH_O, "Returns the tensors that have no id yet."},
    {"found", (PyCFunction)found_method, METH_O, "Describes parameters as a step finds them."},
    {"before", (PyCFunction)before_method, METH_O, "Returns what `stepped` takes, or None."},
    {"stepped", (PyCFunction)(void (*)(void))stepped_method, METH_FASTCALL, "Writes what a step has changed."},
    {"dropped", (PyCFunction)(void (*)(void))dropped_method, METH_FASTCALL, "Writes which gradients are gone."},
    {"handle", (PyCFunction)(void (*)(void))handle_method, METH_FASTCALL | METH_KEYWORDS, "Does what PyTorch's function does."},
    {"forget_libraries", (PyCFunction)forget_libraries_method, METH_NOARGS, "Forgets which code is a library's."},
    {"place", (PyCFunction)place_method, METH_O, "Returns the place of the user's frames, or None."},
    {"site", (PyCFunction)site_method, METH_O, "Returns the site of the user's innermost frame, or None."},
    {"pause", (PyCFunction)pause_method, METH_O, "Stops recording, or resumes it."},
    {NULL}};

static PyObject *
itself(PyObject *self, void *Py_UNUSED(nothing))
{
    return Py_NewRef(self);
}

static PyGetSetDef properties[] = {
    {"__torch_function__", itself, NULL, "the mode's method: the mode itself", NULL},
    {"__self__", itself, NULL, "the mode of the method: the same object", NULL},
    {NULL}};

/* Answers PyTorch, which asks for these two names before each call. Python asks with an object: `tp_getattro`. */
static PyObject *
get_attribute(PyObject *self, char *name)
{
    if (strcmp(name, "__torch_function__") == 0 || strcmp(name, "__self__") == 0)
        return Py_NewRef(self);
    PyObject *text = PyUnicode_FromString(name), *value = text == NULL ? NULL : PyObject_GenericGetAttr(self, text);
    Py_XDECREF(text);
    return value;
}

static PyTypeObject FastPathType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorlens.tracer.recording._fast_path.FastPath",
    .tp_doc = "The `__torch_function__` of a recorder, compiled.",
    .tp_basicsize = sizeof(FastPath),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(FastPath, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_getattr = get_attribute,
    .tp_getattro = PyObject_GenericGetAttr,
    .tp_setattro = PyObject_GenericSetAttr,
    .tp_methods = methods,
    .tp_members = members,
    .tp_getset = properties,
    .tp_new = create,
    .tp_dealloc = deallocate,
    .tp_traverse = traverse, /* no tp_clear: the recorder's dict breaks the cycle */
};

/* --- the module ----------------------------------------------------------------------------------------------------- */

/* Takes the addresses of PyTorch's functions, the place of a tensor in its Python object and that of the version in a
   version counter. Of a plain tensor it notes the C++ class. */
static PyObject *
bind(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long f[10];
    PyObject *plain;
    if (!PyArg_ParseTuple(args, "O(KKKKKKKKKK)nn", &plain, &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6], &f[7], &f[8],
                          &f[9], &torch.tensor_at, &torch.version_at))
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
                                         (long long)version, "nbytes", (long long)nbytes, "address", PyLong_FromVoidPtr(address), "shape", sizes,
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

static PyMethodDef functions[] = {
    {"has_bytes", (PyCFunction)(void (*)(void))has_bytes, METH_FASTCALL, "Returns whether bytes are at an address."},
    {"bind", bind, METH_VARARGS, "Takes the addresses of PyTorch's functions."},
    {"facts", facts, METH_O, "Returns what is read of a tensor."},
    {NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_fast_path", .m_size = -1, .m_methods = functions};

/* Finds the getters of tensors' properties. */
static int
find_getters(PyObject *base)
{
    Property *properties[] = {&version_of, &base_of, &requires_grad_of, &is_leaf_of, &retains_grad_of, &grad_of};
    for (size_t n = 0; n < sizeof properties / sizeof *properties; n++) {
        PyObject *found = PyObject_GetAttrString(base, properties[n]->name);
        if (found == NULL || !Py_IS_TYPE(found, &PyGetSetDescr_Type)) {
            Py_XDECREF(found);
            PyErr_Format(PyExc_ImportError, "%s is no property of tensors", properties[n]->name);
            return -1;
        }
        properties[n]->get = ((PyGetSetDescrObject *)found)->d_getset->get;
        properties[n]->closure = ((PyGetSetDescrObject *)found)->d_getset->closure;
        Py_DECREF(found); /* the class keeps it; a replacement is set on a subclass of it */
    }
    return 0;
}

/* Returns the function by which a mode sees a read of a property. */
static PyObject *
getter_of(PyObject *base, const char *name)
{
    PyObject *property = PyObject_GetAttrString(base, name);
    PyObject *get = property == NULL ? NULL : PyObject_GetAttrString(property, "__get__");
    Py_XDECREF(property);
    return get;
}

static int
find_originals(void)
{
    PyObject *module = PyImport_ImportModule("torch._C");
    PyObject *base = module == NULL ? NULL : PyObject_GetAttrString(module, "TensorBase");
    data_ptr = base == NULL ? NULL : PyObject_GetAttrString(base, "data_ptr"); /* the program may have replaced it */
    data_getter = data_ptr == NULL ? NULL : getter_of(base, "data");
    gradient_getter = data_getter == NULL ? NULL : getter_of(base, "grad");
    int found = gradient_getter == NULL ? -1 : find_getters(base);
    if (found == 0) {
        is_mode_enabled = PyObject_GetAttrString(module, "_is_torch_function_mode_enabled");
        pop_mode = PyObject_GetAttrString(module, "_pop_torch_function_stack");
        push_mode = PyObject_GetAttrString(module, "_push_on_torch_function_stack");
        is_inference = PyObject_GetAttrString(module, "is_inference_mode_enabled");
        found = is_inference == NULL || is_mode_enabled == NULL || pop_mode == NULL || push_mode == NULL ? -1 : 0;
    }
    Py_XDECREF(base);
    Py_XDECREF(module);
    return found;
}

PyMODINIT_FUNC
PyInit__fast_path(void)
{
    struct {
        PyObject **place;
        const char *text;
    } texts[] = {{&s_shape, "shape"},     {&s_dtype, "dtype"},   {&s_device, "device"},
                 {&s_sweep, "sweep"},   {&s_find_template, "find_template"},
                 {&s_entry, "entry"},     {&s_finish, "finish_on_slow_path"},
                 {&s_note_exception, "note_exception"},          {&s_is_watched, "is_watched"},
                 {&s_tensor, "Tensor"},   {&s_parameter, "Parameter"},    {&s_grad, "grad"},
                 {&s_is_leaf, "is_leaf"}, {&s_may_be_saved, "may_be_saved"},
                 {&s_finish_alias, "finish_alias"}};
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
        if ((*texts[n].place = PyUnicode_InternFromString(texts[n].text)) == NULL)
            return NULL;
    PyTypeObject *types[] = {&FastPathType, &TableType, &StoragesType, &NumbersType};
    PyObject *made = find_originals() < 0 ? NULL : PyModule_Create(&module);
    for (size_t n = 0; made != NULL && n < sizeof types / sizeof *types; n++)
        if (PyModule_AddType(made, types[n]) < 0)
            Py_CLEAR(made);
    if (made != NULL && PyModule_AddStringConstant(made, "SOURCE", SOURCE) < 0)
        Py_CLEAR(made);
    return made;
}

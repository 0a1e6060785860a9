/* Keeps places of any width by address, in a hash table. */

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

/* Gathers new tensors of one kind that follow each other: they share one row. */

static int
is_same_kind(const NewTensors *one, const NewTensors *other)
{
    return is_same_shape(&one->shape, &other->shape) && one->nbytes == other->nbytes && one->storage == other->storage
           && one->counter == other->counter && one->base == other->base && one->dtype == other->dtype
           && one->device == other->device && one->type == other->type;
}

static PyObject *
number_or_none(int64_t value)
{
    return value == NONE ? Py_NewRef(Py_None) : PyLong_FromLongLong(value);
}

/* Returns the row of some tensors and drops the reference to their ids. */
static PyObject *
row_of_new(const NewTensors *kind, PyObject *ids)
{
    PyObject *sizes[MAX_DIMENSIONS];
    for (int64_t n = 0; n < kind->shape.dimensions; n++)
        sizes[n] = PyLong_FromLongLong(kind->shape.sizes[n]);
    PyObject *place = Py_NewRef(Py_None);
    if (kind->base != NONE) {
        PyObject *numbers[] = {number_or_none(kind->storage), PyLong_FromLongLong(kind->counter),
                               PyLong_FromLongLong(kind->base)};
        Py_SETREF(place, plain_tuple(3, numbers));
    }
    PyObject *items[] = {PyLong_FromLong(TENSORS_ROW), ids, number_or_none(kind->nbytes), place,
                         plain_tuple(kind->shape.dimensions, sizes), Py_NewRef(kind->dtype), Py_NewRef(kind->device),
                         Py_NewRef(kind->type)};
    return plain_tuple(8, items);
}

/* Puts the row of the tensors that wait into the rows. */
static int
settle_new(FastPath *self)
{
    if (self->new_count == 0)
        return 0;
    NewTensors kind = self->new_kind;
    PyObject *ids = PyBytes_FromStringAndSize((char *)self->new_ids, self->new_count * sizeof *self->new_ids);
    if (ids == NULL)
        return -1;
    self->new_count = 0; /* first: what follows may collect garbage and so run other code */
    PyObject *row = row_of_new(&kind, ids);
    int failed = row == NULL || PyList_Append(self->rows, row) < 0;
    Py_XDECREF(row);
    return failed ? -1 : 0;
}

/* Makes room for a tensor of a kind. */
static int
settle_others(FastPath *self, const NewTensors *kind)
{
    while (self->new_count && (self->new_count == MAX_NEW || !is_same_kind(&self->new_kind, kind)))
        if (settle_new(self) < 0)
            return -1;
    self->new_kind = *kind;
    return 0;
}

/* Finds the call template that fits a call, or asks Python for one and keeps it. */

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
    call->site = template->site;
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
                           .site = call->site,
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
    call->site = PyLong_AsLongLong(PyTuple_GET_ITEM(template, 3));
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

/* Declares what a `FastPath` keeps and what it notes of one call. */

typedef struct Template { /* of calls that one instruction makes: what must be the same in each, and what Python found */
    struct Template *next;
    uintptr_t place, outer; /* the instruction that called PyTorch; the user's, if that is a library's */
    PyObject *func, *kinds; /* `kinds` is a tuple */
    int64_t id, site, drawn;
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

typedef struct { /* what new tensors have in common: each has memory of its own, or all are views of one base */
    Shape shape;
    int64_t nbytes, storage, counter, base; /* NONE: `nbytes` of a view; the others if each tensor has its own */
    PyObject *dtype, *device, *type;        /* their names, borrowed from tables that only grow */
} NewTensors;

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
    PyObject *uncounted, *saved_statistics; /* sets of the recorder, see slow_path.py */
    PyObject *unsaved, *alias_op; /* see unsaved_memory.h */
    Template **templates; /* `bucket_count` lists, a power of two */
    Py_ssize_t template_count, most_templates, bucket_count, next_bucket;
    int64_t *run; /* of MAX_RUN numbers: compact calls that are not in the rows yet, see `settle` */
    Py_ssize_t run_length;
    int64_t *new_ids; /* of MAX_NEW tensors of one kind, which have no row yet */
    Py_ssize_t new_count;
    NewTensors new_kind;
    Py_ssize_t watch_due; /* how many watched storages there are when they are swept next */
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
    int64_t id; /* of the result */
    int64_t template_id, site; /* of the template that fits */
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

/* The short way of `hot.py` once more, compiled: the same tables, the same rows, at a fraction of the cost.

   `hot.py` says what a short way is and why each fact is asked; this file follows it step by step and knows nothing
   that is not there. Whatever is not as the short way has it is handed on: before the call to `otherwise` (the short
   way in Python), after it to `Hot.finish_compiled`.

   Only Python's C API is used, and torch only through its Python attributes: a build works with any release of torch.
   A lens that was installed without a compiler does without this file. `tests/tracer/test_compiled_fast_path.py` holds the two side by
   side. Functions return -1, or NULL, with an exception set. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#ifndef SOURCE
#define SOURCE "" /* which text this was built from: its SHA-256 */
#endif

enum { LONG = 1, ORDINARY, SIMPLE, VIEW }; /* the ways, as in ops.py */
enum { MOST = 16, KINDS = 2 * MOST };      /* tensors, and what tells its other arguments, of a call taken here */

static PyObject *s_version, *s_base, *s_requires_grad, *s_is_leaf, *s_retains_grad, *s_shape, *s_dtype, *s_device,
    *s_paused, *s_due, *s_sweep, *s_find_plan, *s_entry, *s_finish_compiled, *s_refuse, *s_is_watched;
static PyObject *none, *zero; /* NONE as in journal.py, and 0 */
static PyObject *data_ptr;    /* of tensors, as PyTorch made it */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *recorder, *otherwise, *calling, *identity; /* a `Hot`, what it hands calls to, its `Identity` */
    PyObject *ways, *plans, *codes, *rows, *detours, *watched, *guarded, *known, *blocks, *numbers; /* their tables */
    PyObject *atoms, *risks, *note_risk, *tensor, *parameter, *next_sequence, *grad_enabled, *only_cpu; /* see hot.py */
} ShortWay;

typedef struct { /* a tensor among the arguments, as it was before the call */
    PyObject *tensor, *id, *version;
} Input;

typedef struct {
    PyObject *func, *args, *kwargs; /* borrowed; `kwargs` may be NULL */
    PyFrameObject *frame;           /* that called torch */
    Input inputs[MOST];
    Py_ssize_t count;
    int mixed;            /* whether a tensor came in a list, or something was given by name */
    PyObject *kinds[KINDS]; /* of the arguments that are no tensors: types, or the values of those that may tell more */
    Py_ssize_t kind_count;
    PyObject *first, *result; /* the sequence number before; what came back */
    PyObject *version, *base, *shape, *dtype, *device, *address, *owner, *plan; /* of the result, as far as asked */
    PyObject *given; /* the shape of the first tensor among the arguments, or None */
    long long graph, leaf, drawn;
} Call;

static void
release(Call *call)
{
    for (Py_ssize_t n = 0; n < call->count; n++) {
        Py_DECREF(call->inputs[n].tensor);
        Py_DECREF(call->inputs[n].id);
        Py_XDECREF(call->inputs[n].version);
    }
    for (Py_ssize_t n = 0; n < call->kind_count; n++)
        Py_DECREF(call->kinds[n]);
    PyObject *held[] = {(PyObject *)call->frame, call->first,  call->version, call->base,  call->shape, call->dtype,
                        call->device,            call->given,  call->address, call->owner, call->plan};
    for (size_t n = 0; n < sizeof held / sizeof *held; n++)
        Py_XDECREF(held[n]);
}

/* --- small questions --------------------------------------------------------------------------------------------- */

static int
is_tensor(ShortWay *self, PyObject *value)
{
    PyObject *kind = (PyObject *)Py_TYPE(value);
    return kind == self->tensor || kind == self->parameter;
}

static int
is_atom(ShortWay *self, PyObject *value)
{
    return PySet_Contains(self->atoms, (PyObject *)Py_TYPE(value)) == 1;
}

/* Whether a reference that was just made is to something true; it is given up. */
static int
truth(PyObject *value)
{
    int answer = value == NULL ? -1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return answer;
}

/* Likewise the number that it is, less `start`. */
static int
distance(PyObject *value, PyObject *start, long long *result)
{
    if (value == NULL)
        return -1;
    *result = PyLong_AsLongLong(value) - PyLong_AsLongLong(start);
    Py_DECREF(value);
    return PyErr_Occurred() ? -1 : 0;
}

/* The tensor that an entry is about, to be compared only; NULL when it is dead. */
static PyObject *
tensor_of(PyObject *entry)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *tensor = NULL;
    if (PyWeakref_GetRef(PyTuple_GET_ITEM(entry, 0), &tensor) == 1)
        Py_DECREF(tensor);
    return tensor;
#else
    PyObject *tensor = PyWeakref_GET_OBJECT(PyTuple_GET_ITEM(entry, 0));
    return tensor == Py_None ? NULL : tensor;
#endif
}

/* What is known of a tensor, borrowed; NULL where it was never met. */
static PyObject *
entry_of(ShortWay *self, PyObject *tensor)
{
    PyObject *address = PyLong_FromVoidPtr(tensor);
    PyObject *entry = address == NULL ? NULL : PyDict_GetItemWithError(self->known, address);
    Py_XDECREF(address);
    return entry != NULL && tensor_of(entry) == tensor ? entry : NULL;
}

/* --- before the call; 0 leaves it to the short way in Python ------------------------------------------------------- */

static int
note_tensor(ShortWay *self, Call *call, PyObject *tensor)
{
    PyObject *entry = call->count < MOST ? entry_of(self, tensor) : NULL;
    if (entry == NULL)
        return 0;
    Input *input = &call->inputs[call->count++]; /* held from here on: a mode of the program's may answer the question */
    input->tensor = Py_NewRef(tensor);
    input->id = Py_NewRef(PyTuple_GET_ITEM(entry, 1));
    input->version = PyObject_GetAttr(tensor, s_version); /* an inference tensor has none */
    return input->version != NULL && PyLong_CheckExact(input->version);
}

static int
note_kind(Call *call, PyObject *kind)
{
    if (call->kind_count >= KINDS)
        return 0;
    call->kinds[call->kind_count++] = Py_NewRef(kind);
    return 1;
}

/* A plain value, by its place among the tensors and its type; a bool or a text by itself, since it may decide what a
   function computes. */
static int
note_atom(ShortWay *self, Call *call, PyObject *value, Py_ssize_t before)
{
    int tells = PyBool_Check(value) || PyUnicode_CheckExact(value);
    if (!is_atom(self, value) || call->kind_count + 2 > KINDS)
        return 0;
    PyObject *place = PyLong_FromSsize_t(before); /* a small number: there is one object for each */
    int noted = place != NULL && note_kind(call, place) && note_kind(call, tells ? value : (PyObject *)Py_TYPE(value));
    Py_XDECREF(place);
    return noted;
}

/* A tensor or a plain value; `before` says where it is, as in hot.py. */
static int
note_item(ShortWay *self, Call *call, PyObject *value, Py_ssize_t before)
{
    return is_tensor(self, value) ? note_tensor(self, call, value) : note_atom(self, call, value, before);
}

static int
note_arguments(ShortWay *self, Call *call)
{
    Py_ssize_t size = PyTuple_GET_SIZE(call->args), plain, position = 0;
    PyObject *value, *name;
    for (Py_ssize_t n = 0; n < size; n++) {
        value = PyTuple_GET_ITEM(call->args, n);
        if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value) && !note_item(self, call, value, 2 * call->count + 1))
            return 0;
    }
    plain = call->count;
    for (Py_ssize_t n = 0; n < size; n++) {
        value = PyTuple_GET_ITEM(call->args, n);
        if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value))
            continue;
        if (!note_kind(call, (PyObject *)Py_TYPE(value)))
            return 0;
        for (Py_ssize_t item = 0; item < PySequence_Fast_GET_SIZE(value); item++)
            if (!note_item(self, call, PySequence_Fast_GET_ITEM(value, item), call->count - plain))
                return 0;
    }
    if (call->kwargs != NULL && PyDict_GET_SIZE(call->kwargs) && !note_kind(call, (PyObject *)&PyList_Type))
        return 0;
    while (call->kwargs != NULL && PyDict_Next(call->kwargs, &position, NULL, &value))
        if (!note_item(self, call, value, call->count - plain))
            return 0;
    call->mixed = call->count > plain || position > 0;
    position = 0;
    while (call->kwargs != NULL && PyDict_Next(call->kwargs, &position, &name, NULL))
        if (!note_kind(call, name))
            return 0;
    return 1;
}

/* --- plans and rows ------------------------------------------------------------------------------------------------ */

static PyObject *
kinds_of(Call *call)
{
    PyObject *kinds = PyTuple_New(call->kind_count);
    for (Py_ssize_t n = 0; kinds != NULL && n < call->kind_count; n++)
        PyTuple_SET_ITEM(kinds, n, Py_NewRef(call->kinds[n]));
    return kinds;
}

static int
is_same(PyObject *known, PyObject *asked)
{
    return known == asked || PyObject_RichCompareBool(known, asked, Py_EQ) == 1;
}

/* Whether a plan's key is that of this call. `shared` is NULL for a kernel, as in `hot.py`. */
static int
stands_for(PyObject *plan, Call *call, PyObject *shared)
{
    PyObject *key = PyTuple_GET_ITEM(plan, 0);
    if (PyTuple_GET_ITEM(key, 0) != call->func || PyTuple_GET_SIZE(key) != (shared ? 11 : 9))
        return 0;
    if (shared && (PyTuple_GET_ITEM(key, 9) != shared || !is_same(PyTuple_GET_ITEM(key, 10), call->given)))
        return 0;
    PyObject *kinds = PyTuple_GET_ITEM(key, 1);
    if (PyTuple_GET_SIZE(kinds) != call->kind_count)
        return 0;
    for (Py_ssize_t n = 0; n < call->kind_count; n++)
        if (PyTuple_GET_ITEM(kinds, n) != call->kinds[n])
            return 0;
    return PyLong_AsLongLong(PyTuple_GET_ITEM(key, 2)) == call->graph
           && PyLong_AsLongLong(PyTuple_GET_ITEM(key, 3)) == 2 * call->count + 1
           && (PyTuple_GET_ITEM(key, 4) == Py_True) == call->leaf
           && PyLong_AsLongLong(PyTuple_GET_ITEM(key, 5)) == call->drawn && is_same(PyTuple_GET_ITEM(key, 6), call->shape)
           && is_same(PyTuple_GET_ITEM(key, 7), call->dtype) && is_same(PyTuple_GET_ITEM(key, 8), call->device);
}

/* Where an instruction lies in memory. */
static PyObject *
place_of(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code); /* the frame keeps it */
    return PyLong_FromLongLong((long long)(Py_uintptr_t)code + PyFrame_GetLasti(frame));
}

/* The user's innermost frame, a new reference; NULL, without an error, where `Hot.find_plan` has to look for it. */
static PyFrameObject *
user_frame(ShortWay *self, PyFrameObject *innermost)
{
    PyFrameObject *frame = (PyFrameObject *)Py_NewRef((PyObject *)innermost);
    while (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyObject *address = PyLong_FromVoidPtr(code);
        Py_DECREF(code);
        PyObject *offsets = address == NULL ? NULL : PyDict_GetItemWithError(self->codes, address);
        Py_XDECREF(address);
        if (offsets != NULL && offsets != Py_None)
            return frame;
        PyFrameObject *caller = offsets == NULL ? NULL : PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
    }
    return NULL;
}

/* What a call is looked up by when code of a library made it: (the user's instruction, the library's). */
static PyObject *
outer_place_of(ShortWay *self, PyFrameObject *frame, PyObject *inner)
{
    PyFrameObject *outermost = user_frame(self, frame);
    PyObject *outer = outermost == NULL || outermost == frame ? NULL : place_of(outermost);
    Py_XDECREF((PyObject *)outermost);
    PyObject *both = outer == NULL ? NULL : PyTuple_Pack(2, outer, inner);
    Py_XDECREF(outer);
    return both;
}

/* Take the plan at a place: 1 if it stands for the call. */
static int
take_plan(ShortWay *self, Call *call, PyObject *place, PyObject *shared)
{
    call->plan = Py_XNewRef(PyDict_GetItemWithError(self->plans, place)); /* comparing may run code that replaces it */
    if (call->plan != NULL && stands_for(call->plan, call, shared))
        return 1;
    Py_CLEAR(call->plan);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *
key_of(Call *call, PyObject *shared)
{
    PyObject *kinds = kinds_of(call), *leaf = call->leaf ? Py_True : Py_False;
    if (kinds == NULL)
        return NULL;
    return Py_BuildValue(shared == NULL ? "(ONLLOLOOO)" : "(ONLLOLOOOOO)", call->func, kinds, call->graph,
                         (long long)(2 * call->count + 1), leaf, call->drawn, call->shape, call->dtype, call->device,
                         shared, call->given);
}

static int
find_plan(ShortWay *self, Call *call, PyObject *shared, int written)
{
    PyObject *key = key_of(call, shared);
    if (key == NULL)
        return -1;
    PyObject *arguments[] = {self->recorder, (PyObject *)call->frame, key, call->result, written ? Py_True : Py_False};
    call->plan = PyObject_VectorcallMethod(s_find_plan, arguments, 5, NULL);
    Py_DECREF(key);
    return call->plan == NULL ? -1 : 1;
}

/* Set the plan of a call: the one that was right at its line last, or what `Hot.find_plan` finds. */
static int
set_plan(ShortWay *self, Call *call, PyObject *shared, int written)
{
    PyObject *place = place_of(call->frame), *outer = NULL;
    int found = place == NULL ? -1 : take_plan(self, call, place, shared);
    if (found == 0) {
        outer = outer_place_of(self, call->frame, place);
        found = outer != NULL ? take_plan(self, call, outer, shared) : PyErr_Occurred() ? -1 : 0;
    }
    if (found == 0) {
        found = find_plan(self, call, shared, written);
        if (found == 1 && outer != NULL && PyDict_SetItem(self->plans, outer, call->plan) < 0)
            found = -1;
    }
    Py_XDECREF(outer);
    Py_XDECREF(place);
    return found < 0 ? -1 : 0;
}

/* Give the new tensor its id, a new reference. */
static PyObject *
add(ShortWay *self, Call *call)
{
    PyObject *entry = NULL, *owner = call->owner, *id = PyIter_Next(self->numbers);
    PyObject *ref = PyWeakref_NewRef(call->result, NULL), *place = PyLong_FromVoidPtr(call->result);
    if (id != NULL && ref != NULL && place != NULL)
        entry = owner == NULL ? PyTuple_Pack(4, ref, id, id, id)
                              : PyTuple_Pack(4, ref, id, PyTuple_GET_ITEM(owner, 2), PyTuple_GET_ITEM(owner, 3));
    if (entry == NULL || PyDict_SetItem(self->known, place, entry) < 0
        || (owner == NULL && PyDict_SetItem(self->blocks, call->address, entry) < 0))
        Py_CLEAR(id);
    Py_XDECREF(entry);
    Py_XDECREF(place);
    Py_XDECREF(ref);
    return id;
}

/* Write the row of a call: 1 when it is written. */
static int
write_row(ShortWay *self, Call *call, PyObject *id, PyObject *version)
{
    PyObject *rows = self->rows, *owner = call->owner == NULL ? none : PyTuple_GET_ITEM(call->owner, 1);
    Py_ssize_t start = PyList_GET_SIZE(rows);
    int failed = PyList_Append(rows, PyTuple_GET_ITEM(call->plan, 1));
    for (Py_ssize_t n = 0; n < call->count; n++)
        failed |= PyList_Append(rows, call->inputs[n].id) | PyList_Append(rows, call->inputs[n].version);
    failed |= PyList_Append(rows, id) | PyList_Append(rows, owner);
    failed |= PyList_Append(rows, version) | PyList_Append(rows, call->first);
    if (failed) /* out of memory: half a row can't be read */
        PyList_SetSlice(rows, start, PyList_GET_SIZE(rows), NULL);
    return failed ? -1 : 1;
}

/* Forget the dead now and then. */
static int
sweep(ShortWay *self, PyObject *id)
{
    PyObject *due = PyObject_GetAttr(self->identity, s_due);
    if (due == NULL)
        return -1;
    int early = PyLong_AsLongLong(id) < PyLong_AsLongLong(due);
    Py_DECREF(due);
    return early || truth(PyObject_CallMethodOneArg(self->identity, s_sweep, id)) >= 0 ? 0 : -1;
}

static int
write_new(ShortWay *self, Call *call, PyObject *version)
{
    PyObject *id = add(self, call);
    int outcome = id == NULL ? -1 : write_row(self, call, id, version);
    if (outcome == 1 && sweep(self, id) < 0)
        outcome = -1;
    Py_XDECREF(id);
    return outcome;
}

/* --- after the call: 1 when its row is written, 0 for the long way ------------------------------------------------- */

static int
look_at(ShortWay *self, Call *call, int always_device)
{
    call->shape = PyObject_GetAttr(call->result, s_shape);
    call->dtype = call->shape == NULL ? NULL : PyObject_GetAttr(call->result, s_dtype);
    if (call->dtype != NULL)
        call->device = !always_device && self->only_cpu == Py_True ? Py_NewRef(Py_None)
                                                                   : PyObject_GetAttr(call->result, s_device);
    return call->device == NULL ? -1 : 0;
}

static int
note_risk(ShortWay *self, Call *call)
{
    PyObject *kwargs = call->kwargs == NULL ? PyDict_New() : Py_NewRef(call->kwargs);
    if (kwargs == NULL)
        return -1;
    int noted = truth(PyObject_CallFunctionObjArgs(self->note_risk, self->recorder, call->func, call->args, kwargs, NULL));
    Py_DECREF(kwargs);
    return noted < 0 ? -1 : 0;
}

/* A kernel, of way SIMPLE or VIEW: what `__torch_function__` does in hot.py. */
static int
record_kernel(ShortWay *self, Call *call, int way)
{
    if (distance(PyObject_CallNoArgs(self->next_sequence), call->first, &call->drawn) < 0)
        return -1;
    call->graph = 2; /* its derivative was recorded, hence the result requires grad */
    if (!call->drawn) {
        int enabled = truth(PyObject_CallNoArgs(self->grad_enabled));
        if (enabled < 0)
            return -1;
        call->graph = !enabled;
        if (call->graph && truth(PyObject_GetAttr(call->result, s_version)) < 0) /* an inference tensor has none */
            return -1;
    }
    else if (call->drawn != 1)
        return 0;
    if (look_at(self, call, 0) < 0 || set_plan(self, call, NULL, 0) < 0)
        return -1;
    if (call->graph == 2 && PyTuple_GET_ITEM(call->plan, 2) == Py_True && note_risk(self, call) < 0)
        return -1;
    if (way == SIMPLE) {
        call->address = PyObject_CallOneArg(data_ptr, call->result);
        if (call->address == NULL)
            return -1;
        int lies_somewhere = PyObject_IsTrue(call->address);
        return lies_somewhere == 1 ? write_new(self, call, zero) : lies_somewhere;
    }
    if (call->count == 0)
        return 0;
    call->base = PyObject_GetAttr(call->result, s_base);
    if (call->base == NULL)
        return -1;
    call->owner = Py_XNewRef(entry_of(self, call->base));
    /* a view has the version of what it is a view of */
    return call->owner == NULL ? 0 : write_new(self, call, call->inputs[0].version);
}

/* Which inputs have moved on: none, the first alone, or (2) others. */
static int
moved(Call *call)
{
    int found = 0;
    for (Py_ssize_t n = 0; n < call->count; n++) {
        long long steps;
        if (distance(PyObject_GetAttr(call->inputs[n].tensor, s_version), call->inputs[n].version, &steps) < 0)
            return -1;
        if (steps)
            found |= n == 0 ? 1 : 2;
    }
    return found;
}

/* The graph's part of what is asked of an ordinary call's result. */
static int
look_at_node(ShortWay *self, Call *call, int written)
{
    int requires_grad = truth(PyObject_GetAttr(call->result, s_requires_grad));
    int enabled = requires_grad < 0 ? -1 : truth(PyObject_CallNoArgs(self->grad_enabled));
    if (enabled < 0)
        return -1;
    call->graph = requires_grad ? (enabled ? 2 : 3) : !enabled;
    if (!requires_grad)
        return 1;
    int leaf = truth(PyObject_GetAttr(call->result, s_is_leaf));
    if (leaf < 0)
        return -1;
    call->leaf = leaf;
    if (leaf || !call->drawn)
        return leaf && written;
    if (!written)
        return 1;
    int retains_grad = truth(PyObject_GetAttr(call->result, s_retains_grad));
    return retains_grad < 0 ? -1 : !retains_grad;
}

/* A call that returned one plain tensor, new or its first argument, written: `Hot.ordinary`. */
static int
record_ordinary(ShortWay *self, Call *call)
{
    int risky = PyDict_Contains(self->risks, call->func);
    if (risky < 0 || (risky && note_risk(self, call) < 0))
        return -1;
    if (distance(PyObject_CallNoArgs(self->next_sequence), call->first, &call->drawn) < 0)
        return -1;
    call->version = PyObject_GetAttr(call->result, s_version);
    if (call->version == NULL)
        return -1;
    int written = entry_of(self, call->result) != NULL;
    int changed = moved(call);
    if (changed < 0)
        return -1;
    if (changed != written || (written && call->inputs[0].tensor != call->result))
        return 0;
    int usual = look_at_node(self, call, written);
    if (usual != 1)
        return usual;
    call->base = PyObject_GetAttr(call->result, s_base);
    if (call->base == NULL)
        return -1;
    if (call->base != Py_None) {
        if (written)
            return 0;
        call->owner = PyObject_CallMethodOneArg(self->identity, s_entry, call->base);
        if (call->owner == NULL)
            return -1;
    }
    else if (!written) {
        call->address = PyObject_CallOneArg(data_ptr, call->result);
        PyObject *lies_there = call->address == NULL ? NULL : PyDict_GetItemWithError(self->blocks, call->address);
        if (call->address == NULL || (lies_there != NULL && tensor_of(lies_there) != NULL))
            return call->address == NULL ? -1 : 0;
    }
    PyObject *shared = written || call->owner != NULL ? Py_True : Py_False;
    call->given = call->count ? PyObject_GetAttr(call->inputs[0].tensor, s_shape) : Py_NewRef(Py_None);
    if (call->given == NULL || look_at(self, call, 1) < 0 || set_plan(self, call, shared, written) < 0)
        return -1;
    return written ? write_row(self, call, call->inputs[0].id, call->version) : write_new(self, call, call->version);
}

/* --- the rest goes the long way ------------------------------------------------------------------------------------- */

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
    for (Py_ssize_t n = 0; accesses != NULL && n < call->count; n++) {
        PyList_SET_ITEM(accesses, 2 * n, Py_NewRef(call->inputs[n].id));
        PyList_SET_ITEM(accesses, 2 * n + 1, Py_NewRef(call->inputs[n].version));
    }
    return accesses;
}

/* Whether some input of a call lies in memory that is watched. */
static int
touches_watched(ShortWay *self, Call *call)
{
    int found = 0;
    for (Py_ssize_t n = 0; n < call->count && found == 0; n++) {
        PyObject *entry = entry_of(self, call->inputs[n].tensor);
        if (entry != NULL)
            found = PySet_Contains(self->watched, PyTuple_GET_ITEM(entry, 3));
    }
    return found;
}

/* Whether a call concerns memory that can be written past a version counter. */
static int
is_watched(ShortWay *self, Call *call)
{
    if (PySet_GET_SIZE(self->watched) == 0)
        return 0;
    if (PyList_GET_SIZE(self->guarded) == 0) {
        int touches = touches_watched(self, call);
        if (touches != 1)
            return touches;
    }
    PyObject *tensors = tensors_of(call), *answer = NULL;
    if (tensors != NULL) {
        PyObject *arguments[] = {self->recorder, tensors, call->first, (PyObject *)call->frame};
        answer = PyObject_VectorcallMethod(s_is_watched, arguments, 4, NULL);
    }
    Py_XDECREF(tensors);
    return truth(answer);
}

static int
finish(ShortWay *self, Call *call)
{
    PyObject *tensors = tensors_of(call), *accesses = accesses_of(call), *done = NULL;
    PyObject *called = Py_BuildValue("(OOOO)", call->func, call->args, call->kwargs ? call->kwargs : Py_None, call->frame);
    if (tensors != NULL && accesses != NULL && called != NULL) {
        PyObject *arguments[] = {self->recorder, called, call->result, tensors, accesses, call->first};
        done = PyObject_VectorcallMethod(s_finish_compiled, arguments, 6, NULL);
    }
    Py_XDECREF(tensors);
    Py_XDECREF(accesses);
    Py_XDECREF(called);
    return truth(done) < 0 ? -1 : 0;
}

/* Note the exception that is set, which then goes on its way. */
static void
refuse(ShortWay *self, Call *call)
{
    PyObject *kind, *error, *traceback, *done = NULL;
    PyErr_Fetch(&kind, &error, &traceback);
    PyErr_NormalizeException(&kind, &error, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(error, traceback);
    PyObject *accesses = accesses_of(call);
    if (accesses != NULL) {
        PyObject *arguments[] = {self->recorder, error, call->func, accesses, (PyObject *)call->frame};
        done = PyObject_VectorcallMethod(s_refuse, arguments, 5, NULL);
    }
    Py_XDECREF(accesses);
    if (done == NULL && !PyErr_ExceptionMatches(PyExc_Exception)) { /* a Ctrl-C while it was being noted */
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
        return;
    }
    Py_XDECREF(done);
    PyErr_Restore(kind, error, traceback); /* in place of an error of ours: the stack may be full */
}

/* Whether the exception that is set is the program's: Ctrl-C, or what a handler of signals raised in Python code of
   ours. Only what has a traceback may be. */
static int
is_programs(void)
{
    PyObject *kind, *error, *traceback, *net, *answer = NULL;
    if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_Exception))
        return PyErr_Occurred() != NULL;
    PyErr_Fetch(&kind, &error, &traceback);
    if (traceback != NULL) {
        PyErr_NormalizeException(&kind, &error, &traceback);
        PyException_SetTraceback(error, traceback);
        net = PyImport_ImportModule("tensorlens.tracer.isolation.guard");
        answer = net == NULL ? NULL : PyObject_CallMethod(net, "raised_by_handler", "O", error);
        Py_XDECREF(net);
        PyErr_Clear();
    }
    int programs = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Restore(kind, error, traceback);
    return programs;
}

static int
record(ShortWay *self, Call *call, int way)
{
    int outcome = 0;
    if ((PyObject *)Py_TYPE(call->result) == self->tensor && PySet_GET_SIZE(self->detours) == 0
        && is_watched(self, call) == 0)
        outcome = way == ORDINARY || call->mixed ? record_ordinary(self, call) : record_kernel(self, call, way);
    if (PyErr_Occurred()) { /* it has no version, no memory, or no plan; a Ctrl-C goes on its way */
        if (is_programs())
            return -1;
        PyErr_Clear();
    }
    return outcome == 1 ? 0 : finish(self, call);
}

/* Make the call: that of a function written in Python has a frame of ours around it, as `invisible.py` expects. */
static PyObject *
make_call(ShortWay *self, Call *call)
{
    if (!PyFunction_Check(call->func))
        return PyObject_Call(call->func, call->args, call->kwargs);
    return PyObject_CallFunctionObjArgs(self->calling, call->func, call->args, call->kwargs, NULL);
}

static PyObject *
short_way(PyObject *callable, PyObject *const *arguments, size_t flags, PyObject *names)
{
    ShortWay *self = (ShortWay *)callable;
    Py_ssize_t given = PyVectorcall_NARGS(flags);
    PyObject *found = NULL;
    if (names == NULL && (given == 3 || given == 4) && PyTuple_CheckExact(arguments[2]))
        found = PyDict_GetItemWithError(self->ways, arguments[0]);
    long way = found == NULL ? LONG : PyLong_AsLong(found);
    if (way != LONG && truth(PyObject_GetAttr(self->recorder, s_paused)) == 0) {
        Call call = {.func = arguments[0], .args = arguments[2]};
        if (given == 4 && arguments[3] != Py_None)
            call.kwargs = arguments[3];
        call.frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
        int ready = call.frame != NULL && (call.kwargs == NULL || PyDict_CheckExact(call.kwargs))
                    && note_arguments(self, &call);
        call.first = ready ? PyObject_CallNoArgs(self->next_sequence) : NULL;
        if (call.first != NULL) {
            call.result = make_call(self, &call);
            if (call.result == NULL)
                refuse(self, &call);
            else if (record(self, &call, (int)way) < 0)
                Py_CLEAR(call.result);
            release(&call);
            return call.result;
        }
        release(&call);
    }
    if (is_programs())
        return NULL;
    PyErr_Clear(); /* of a question that has no answer: it is asked again there */
    return PyObject_Vectorcall(self->otherwise, arguments, flags, names);
}

/* --- the type ------------------------------------------------------------------------------------------------------- */

static PyObject **
members_of(ShortWay *self, Py_ssize_t *count)
{
    *count = (PyObject **)(self + 1) - &self->recorder;
    return &self->recorder;
}

static int
traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_ssize_t count;
    PyObject **members = members_of((ShortWay *)self, &count);
    for (Py_ssize_t n = 0; n < count; n++)
        Py_VISIT(members[n]);
    return 0;
}

static void
deallocate(PyObject *self)
{
    Py_ssize_t count;
    PyObject **members = members_of((ShortWay *)self, &count);
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t n = 0; n < count; n++)
        Py_XDECREF(members[n]);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"recorder", "otherwise", "calling", "identity", "ways",  "plans",   "codes",  "rows",   "detours",   "watched", "guarded", "known",
                            "blocks",   "numbers",   "atoms",    "risks", "note_risk", "tensor", "parameter", "next_sequence",
                            "grad_enabled", "only_cpu", NULL};
    PyObject *m[22];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OOOOO!O!O!O!O!O!O!O!O!OO!O!OOOOOO", names, &m[0], &m[1], &m[2], &m[3],
                                     &PyDict_Type, &m[4], &PyDict_Type, &m[5], &PyDict_Type, &m[6], &PyList_Type, &m[7],
                                     &PySet_Type, &m[8], &PySet_Type, &m[9], &PyList_Type, &m[10], &PyDict_Type, &m[11],
                                     &PyDict_Type, &m[12], &m[13], &PySet_Type, &m[14], &PyDict_Type, &m[15], &m[16],
                                     &m[17], &m[18], &m[19], &m[20], &m[21]))
        return NULL;
    ShortWay *self = (ShortWay *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    Py_ssize_t count;
    PyObject **members = members_of(self, &count);
    for (Py_ssize_t n = 0; n < count; n++)
        members[n] = Py_NewRef(m[n]);
    self->vectorcall = short_way;
    return (PyObject *)self;
}

static PyMemberDef visible[] = {
    {"__self__", T_OBJECT_EX, offsetof(ShortWay, recorder), READONLY, "torch asks: the mode that this is a method of"},
    {NULL}};

static PyTypeObject ShortWayType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorlens.tracer.recording._fast_path.ShortWay",
    .tp_doc = "The `__torch_function__` of a recorder, compiled.",
    .tp_basicsize = sizeof(ShortWay),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(ShortWay, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_members = visible,
    .tp_new = create,
    .tp_dealloc = deallocate,
    .tp_traverse = traverse, /* no tp_clear: the recorder's dict breaks the cycle */
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_fast_path", .m_size = -1};

PyMODINIT_FUNC
PyInit__fast_path(void)
{
    struct {
        PyObject **place;
        const char *text;
    } texts[] = {{&s_version, "_version"},
                 {&s_base, "_base"},
                 {&s_requires_grad, "requires_grad"},
                 {&s_is_leaf, "is_leaf"},
                 {&s_retains_grad, "retains_grad"},
                 {&s_shape, "shape"},
                 {&s_dtype, "dtype"},
                 {&s_device, "device"},
                 {&s_paused, "paused"},
                 {&s_due, "due"},
                 {&s_sweep, "sweep"},
                 {&s_find_plan, "find_plan"},
                 {&s_entry, "entry"},
                 {&s_finish_compiled, "finish_compiled"},
                 {&s_refuse, "refuse"},
                 {&s_is_watched, "is_watched"}};
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
        if ((*texts[n].place = PyUnicode_InternFromString(texts[n].text)) == NULL)
            return NULL;
    PyObject *torch = PyImport_ImportModule("torch._C");
    PyObject *base = torch == NULL ? NULL : PyObject_GetAttrString(torch, "TensorBase");
    data_ptr = base == NULL ? NULL : PyObject_GetAttrString(base, "data_ptr"); /* not one that the program has put there */
    Py_XDECREF(base);
    Py_XDECREF(torch);
    if (data_ptr == NULL)
        return NULL;
    none = PyLong_FromLong(-1);
    zero = PyLong_FromLong(0);
    PyObject *made = none == NULL || zero == NULL || PyType_Ready(&ShortWayType) < 0 ? NULL : PyModule_Create(&module);
    if (made != NULL
        && (PyModule_AddObjectRef(made, "ShortWay", (PyObject *)&ShortWayType) < 0
            || PyModule_AddStringConstant(made, "SOURCE", SOURCE) < 0))
        Py_CLEAR(made);
    return made;
}

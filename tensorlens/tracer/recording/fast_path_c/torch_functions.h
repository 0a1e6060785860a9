/* Finds what is called of PyTorch: C and C++ functions, getters of properties, and Python functions. */

static struct { /* see native.py */
    Py_ssize_t tensor_at, version_at, storage_at; /* in the Python object of a tensor, a version counter, a tensor */
    void *plain;                      /* the C++ class of plain tensors: its virtual table */
    int32_t (*dimensions)(void *, int64_t *), (*sizes)(void *, int64_t **), (*dtype)(void *, int32_t *),
        (*device)(void *, int32_t *), (*index)(void *, int32_t *), (*address)(void *, void **),
        (*nbytes)(void *, int64_t *);
    bool (*grad_enabled)(void);
    uint64_t (*next_sequence)(void);
    char **(*version_counter)(void *);
} torch;

static PyObject *data_ptr, *is_contiguous;               /* the originals of `Tensor.data_ptr` and the other */
static PyObject *data_getter, *gradient_getter;          /* what reads `.data` and `.grad` */
static PyObject *is_mode_enabled, *pop_mode, *push_mode, *mode_count, *mode_at; /* PyTorch's, on the stack of modes */
static PyObject *is_inference;                           /* `torch.is_inference_mode_enabled` */

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
    is_contiguous = data_ptr == NULL ? NULL : PyObject_GetAttrString(base, "is_contiguous");
    data_getter = is_contiguous == NULL ? NULL : getter_of(base, "data");
    gradient_getter = data_getter == NULL ? NULL : getter_of(base, "grad");
    int found = gradient_getter == NULL ? -1 : find_getters(base);
    if (found == 0) {
        is_mode_enabled = PyObject_GetAttrString(module, "_is_torch_function_mode_enabled");
        pop_mode = PyObject_GetAttrString(module, "_pop_torch_function_stack");
        push_mode = PyObject_GetAttrString(module, "_push_on_torch_function_stack");
        mode_count = PyObject_GetAttrString(module, "_len_torch_function_stack");
        mode_at = PyObject_GetAttrString(module, "_get_function_stack_at");
        is_inference = PyObject_GetAttrString(module, "is_inference_mode_enabled");
        PyObject *all[] = {is_mode_enabled, pop_mode, push_mode, mode_count, mode_at, is_inference};
        for (size_t n = 0; n < sizeof all / sizeof *all; n++)
            found = all[n] == NULL ? -1 : found;
    }
    Py_XDECREF(base);
    Py_XDECREF(module);
    return found;
}

/* Returns whether the inference mode is on. */
static int
is_inferring(void)
{
    return torch.grad_enabled() ? 0 : truth(PyObject_CallNoArgs(is_inference));
}

/* Makes the strings by which attributes and methods of Python objects are looked up. */

static PyObject *s_shape, *s_dtype, *s_device, *s_sweep, *s_find_template, *s_entry, *s_finish,
    *s_note_exception, *s_is_watched, *s_tensor, *s_parameter, *s_grad, *s_is_leaf, *s_may_be_saved, *s_finish_alias,
    *s_is_observing, *s_training;

static int
intern_names(void)
{
    struct {
        PyObject **place;
        const char *text;
    } texts[] = {
        {&s_shape, "shape"},
        {&s_dtype, "dtype"},
        {&s_device, "device"},
        {&s_sweep, "sweep"},
        {&s_find_template, "find_template"},
        {&s_entry, "entry"},
        {&s_finish, "finish_on_slow_path"},
        {&s_note_exception, "note_exception"},
        {&s_is_watched, "is_watched"},
        {&s_tensor, "Tensor"},
        {&s_parameter, "Parameter"},
        {&s_grad, "grad"},
        {&s_is_leaf, "is_leaf"},
        {&s_may_be_saved, "may_be_saved"},
        {&s_finish_alias, "finish_alias"},
        {&s_is_observing, "is_observing"},
        {&s_training, "training"},
    };
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
        if ((*texts[n].place = PyUnicode_InternFromString(texts[n].text)) == NULL)
            return -1;
    return 0;
}

"""The words in which the lines of the contract are written.

A line that is broken is shown as a program: its own body, after the imports of what it
uses.
"""

import contextlib

import numpy as np
import tensorflow as tf

# Dyadic, so that sums are exact; of one sign in each place, so that none cancels. The
# second row of the weights is zero, where their own rounding hides no step.
START = np.array([[1, -2], [0, 0], [-1.5, 0.25], [2, -0.75]], np.float32)
_GRADIENTS = np.array(
    [
        [[0.5, 1], [2, 0.125], [0.75, 0.25], [1.5, 1]],
        [[1, 0.25], [0.5, 2], [0.625, 0.75], [0.25, 1.125]],
        [[0.75, 0.5], [1.25, 0.5], [1, 1.5], [0.25, 0.75]],
        [[2, 0.75], [0.25, 1], [0.5, 0.5], [1, 0.125]],
    ],
    np.float32,
)


def rows(values, indices):
    """Return the sparse gradient of a table of four rows."""
    values = tf.reshape(tf.constant(values, tf.float32), [-1, 2])
    return tf.IndexedSlices(values, tf.constant(indices, tf.int64), tf.constant([4, 2]))


def dense():
    """Return a gradient for each of four steps."""
    return [tf.constant(gradient) for gradient in _GRADIENTS]


def sparse():
    """Return the same with duplicates, adjacent and apart, and rows left out."""
    indices = ([2, 0, 2], [3, 3, 1], [0, 2, 3], [0, 0, 0])
    return [rows(g[:3], i) for g, i in zip(_GRADIENTS, indices, strict=True)]


def stepper(optimizer, w, mode="eager"):
    """Return a function that takes a step: eager, a tf.function, or under XLA."""

    def step(gradient):
        optimizer.apply_gradients([(gradient, w)])

    optimizer._create_all_weights([w])
    if mode == "eager":
        return step
    return tf.function(step, jit_compile=mode == "xla")


def part(gradient, share):
    """Return the share of a gradient that one replica has."""
    if isinstance(gradient, tf.IndexedSlices):
        values = gradient.values * share
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return gradient * share


def small(x):
    """Return what is within 1/8 of 0: a constraint."""
    return tf.clip_by_value(x, -0.125, 0.125)


def state(optimizer, w):
    return [w.numpy(), *optimizer.get_weights()]


def trained(optimizer, w, gradients, mode="eager"):
    """Take a step for each gradient; return the weights and all state."""
    step = stepper(optimizer, w, mode)
    for gradient in gradients:
        step(tf.cast(gradient, w.dtype))
    return state(optimizer, w)


def slots(optimizer, w):
    """Return the slots of one variable, by name."""
    found = {}
    for name in optimizer.get_slot_names():
        with contextlib.suppress(KeyError):  # a name that others have
            found[name] = optimizer.get_slot(w, name)
    return found


def agree(got, due, what, allowed=None):
    """Compare two lists of arrays; `allowed` is how far each may be apart, or nothing.

    Raises:
        AssertionError: they differ by more.
    """
    for a, b, most in zip(got, due, allowed or [0] * len(due), strict=True):
        a, b = np.float64(a), np.float64(b)
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):
            apart = np.where(equal, 0, np.abs(a - b))
        if not np.all(apart <= most):
            worst = np.unravel_index(np.argmax(apart), apart.shape)
            raise AssertionError(f"{what}: {a[worst]:.9g} where {b[worst]:.9g} is due")


@contextlib.contextmanager
def counted(cls):
    """Yield a list that grows with every object of a class that is made."""
    made, make = [], cls.__init__

    def count(self, *args, **kwargs):
        made.append(self)
        make(self, *args, **kwargs)

    cls.__init__ = count
    try:
        yield made
    finally:
        cls.__init__ = make

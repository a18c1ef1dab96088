"""Lines on the update itself: kinds of gradients, of weights, and slots."""

import numpy as np
import tensorflow as tf

from tf_impl.contract.examine import NO_KERNEL, Subject, line
from tf_impl.contract.words import (
    START,
    agree,
    dense,
    rows,
    slots,
    sparse,
    state,
    trained,
)

BOTH = [{"gradients": "dense()"}, {"gradients": "sparse()"}]


@line("takes steps", [{"gradients": "dense()"}])
def takes_steps(make, gradients):
    """What else is promised can be tried only where this holds."""
    optimizer, w = make(), tf.Variable(START)
    trained(optimizer, w, gradients)
    assert np.all(np.isfinite(w)), f"weights of {w.numpy().tolist()}"


@line("takes sparse steps", [{"gradients": "sparse()"}], sparse=True)
def takes_sparse_steps(make, gradients):
    """The gradient of an embedding is an `IndexedSlices`; a class without
    `_resource_apply_sparse` cannot train one."""
    optimizer, w = make(), tf.Variable(START)
    trained(optimizer, w, gradients)
    assert np.all(np.isfinite(w)), f"weights of {w.numpy().tolist()}"


@line("iterations counts the steps", BOTH)
def iterations(make, gradients):
    """Schedules and bias corrections go by `iterations`, which `apply_gradients` says
    that it increases by 1."""
    optimizer, w = make(), tf.Variable(START)
    trained(optimizer, w, gradients)
    assert optimizer.iterations == 4, f"{int(optimizer.iterations)} after four steps"


@line("minimize is apply_gradients of the gradient")
def minimize(make):
    """`minimize` is what `Model.fit` calls; whoever overrides one of the two has to
    serve both."""
    optimizer, w, twin, v = make(), tf.Variable(START), make(), tf.Variable(START)
    optimizer.minimize(lambda: tf.reduce_sum(w * dense()[0]), [w])
    twin.apply_gradients([(dense()[0], v)])
    agree(state(optimizer, w), state(twin, v), "after minimize")


@line(
    "weights of any rank",
    [{"shape": s} for s in ("()", "(3,)", "(2, 3)", "(2, 1, 3)", "(1, 2, 1, 3)")],
)
def ranks(make, shape):
    """A bias has rank 1, the kernel of a convolution rank 4, a temperature rank 0."""
    optimizer, w = make(), tf.Variable(tf.ones(shape))
    for factor in (1.0, 0.5):
        optimizer.apply_gradients([(tf.fill(shape, factor), w)])
    assert np.all(np.isfinite(w)), f"weights of {w.numpy().tolist()}"


@line(
    "half-precision weights",
    [{"dtype": "'float16'"}, {"dtype": "'bfloat16'"}],
    refusals=NO_KERNEL,
)
def half_precision(make, dtype):
    """0.999 is 1 in bfloat16 and an epsilon of 1e-8 is 0 in float16: coefficients that
    are formed in the dtype of the weights stop training, or make it NaN."""
    w, full = tf.Variable(START, dtype=dtype), tf.Variable(START)
    trained(make(), w, dense()[:1]), trained(make(), full, dense()[:1])
    assert np.all(np.isfinite(np.float64(w))), (
        f"{dtype} weights of {w.numpy().tolist()}"
    )
    half_of_it = tf.cast(START + (full - START) / 2, dtype)  # more than its rounding
    moves = tf.cast(half_of_it, "float32").numpy() != START
    same = np.sign(np.float32(w) - START) == np.sign(full - START)
    assert np.all(same[moves]), f"{dtype} weights do not move where float32 ones do"


@line("float64 weights", [{"gradients": "dense()"}], refusals=NO_KERNEL)
def double_precision(make, gradients, allowed):
    """Whoever compares with a paper or looks for a rounding error trains in float64."""
    optimizer, w = make(), tf.Variable(START, dtype=tf.float64)
    got = trained(optimizer, w, gradients)
    agree(got, trained(make(), tf.Variable(START), dense()), "in float64", allowed)
    low = [
        k
        for k, v in slots(optimizer, w).items()
        if v.dtype.is_floating and v.dtype != w.dtype
    ]
    assert not low, f"slots of lower precision: {', '.join(low)}"


def together(subject: Subject) -> list[dict[str, str]]:
    return [{"dtypes": repr(subject.working_dtypes)}]


@line("weights of several dtypes in one optimizer", together)
def several_dtypes(make, dtypes):
    """Mixed precision has float16 and float32 weights in one model; a coefficient that
    is kept for one dtype does not serve the other."""
    optimizer, moved = make(), []
    together = [tf.Variable(START, dtype=dtype) for dtype in dtypes]
    optimizer.apply_gradients([(tf.cast(dense()[0], w.dtype), w) for w in together])
    for w in together:
        alone = tf.Variable(START, dtype=w.dtype)
        trained(make(), alone, dense()[:1])
        moved.append([np.sign(np.float64(each) - START) for each in (w, alone)])
    agree(*zip(*moved, strict=True), "direction of a step beside other dtypes")
    return ", ".join(dtypes)


@line("a gradient of None leaves weight and slots alone")
def no_gradient(make):
    """A layer that the loss does not reach has the gradient `None`; a rule that sees it
    as zero decays its momentum, and its weights."""
    optimizer, w, still = make(), tf.Variable(START), tf.Variable(START)
    optimizer.apply_gradients([(dense()[0], w), (dense()[1], still)])
    before = [still.numpy(), *(s.numpy() for s in slots(optimizer, still).values())]
    optimizer.apply_gradients([(dense()[2], w), (None, still)])
    after = [still.numpy(), *(s.numpy() for s in slots(optimizer, still).values())]
    agree(after, before, "a variable without gradient")


@line("a variable that comes late")
def late(make):
    """A layer that is unfrozen after some steps starts like one that had no gradient
    until then."""
    optimizer, w, comes = make(), tf.Variable(START), tf.Variable(START)
    twin, v, waits = make(), tf.Variable(START), tf.Variable(START)
    optimizer.apply_gradients([(dense()[0], w)])
    twin._create_all_weights([v, waits])
    twin.apply_gradients([(dense()[0], v), (None, waits)])
    optimizer.apply_gradients([(dense()[1], w), (dense()[2], comes)])
    twin.apply_gradients([(dense()[1], v), (dense()[2], waits)])
    agree([w, comes], [v, waits], "a variable that comes late")


@line("the step is counted")
def step_count(make):
    """Bias corrections with the count of all steps are too small for a variable that
    comes late; with a count of its own they are those of its own average."""
    outcomes = []
    for steps in (0, 7):
        optimizer, w = make(), tf.Variable(START)
        optimizer._create_all_weights([w])
        optimizer.iterations.assign(steps)
        optimizer.apply_gradients([(dense()[0], w)])
        outcomes.append(w.numpy())
    if not np.array_equal(*outcomes):
        return "globally: a first step depends on iterations"
    optimizer, w, late = make(), tf.Variable(START), tf.Variable(START)
    optimizer._create_all_weights([w, late])
    for pairs in ([(dense()[0], w)], [(dense()[0], w), (dense()[0], late)]):
        optimizer.apply_gradients(pairs)
    counts = [slots(optimizer, each).items() for each in (w, late)]
    for (name, two), (_, one) in zip(*counts, strict=True):
        if np.all(np.float64(two) == 2) and np.all(np.float64(one) == 1):
            return f"for each variable: slot {name}"
    return "not by the rule: a first step does not depend on iterations"


@line("slots are made once", BOTH)
def slots_once(make, gradients):
    """`_create_slots` is called in every step; what makes a variable each time forgets
    what it had, and fails in a `tf.function`."""
    optimizer, w = make(), tf.Variable(START)
    trained(optimizer, w, gradients[:2])
    names = []
    with tf.variable_creator_scope(
        lambda make, **kw: (names.append(kw.get("name")), make(**kw))[1]
    ):
        trained(optimizer, w, gradients[2:])
    assert not names, f"a later step makes variables: {names}"


@line("every variable has its own slots")
def own_slots(make):
    """Two variables that share a slot train each other's momentum; and one without slot
    is a `KeyError` in its first step."""
    optimizer, w, other = make(), tf.Variable(START), tf.Variable(START)
    optimizer.apply_gradients([(dense()[0], w), (dense()[1], other)])
    mine, others = slots(optimizer, w), slots(optimizer, other)
    assert set(mine) == set(others), f"slots {set(mine)} and {set(others)}"
    shared = [name for name in mine if mine[name] is others[name]]
    assert not shared, f"two variables share {', '.join(shared)}"
    return f"slots: {', '.join(mine) or 'none'}"


SPLIT = [
    {
        "gradients": "sparse()",
        "indices": "[3, 0, 3, 3]",
        "values": "[[1, 2], [4, 0.5], [0.25, 8], [2, 1]]",
    },
    {
        "gradients": "sparse()",
        "indices": "[3, 3, 3, 0]",
        "values": "[[2, 1], [1, 2], [0.25, 8], [4, 0.5]]",
    },
]


@line("splitting a row changes nothing", SPLIT, sparse=True)
def duplicates(make, gradients, allowed, indices, values):
    """A word that comes twice in a batch has two rows in the gradient, and their sum is
    meant; a rule that is not linear must see the sum."""
    optimizer, w, twin, v = make(), tf.Variable(START), make(), tf.Variable(START)
    for o, x in ((optimizer, w), (twin, v)):
        o.apply_gradients([(gradients[0], x)])
    optimizer.apply_gradients([(rows(values, indices), w)])
    twin.apply_gradients([(rows([[4, 0.5], [3.25, 11]], [0, 3]), v)])
    agree(state(optimizer, w), state(twin, v), "row 3 in three parts", allowed)


@line("a sparse gradient without rows", sparse=True)
def no_rows(make):
    """A batch may hold no token of a table; its step is counted, and nothing is NaN."""
    optimizer, w = make(), tf.Variable(START)
    for gradient in (sparse()[0], rows([], []), sparse()[1]):
        optimizer.apply_gradients([(gradient, w)])
    assert optimizer.iterations == 3, "the step without rows is not counted"
    assert np.all(np.isfinite(w)), f"weights of {w.numpy().tolist()}"


@line(
    "bad indices are refused, the state untouched",
    [{"bad": "4"}, {"bad": "-1"}],
    sparse=True,
)
def bad_indices(make, bad):
    """An index out of range is a fault in the data; after it was reported, training
    can go on only if no row has been updated and no step counted."""
    optimizer, w = make(), tf.Variable(START)
    before = trained(optimizer, w, sparse()[:1])
    try:
        optimizer.apply_gradients([(rows([[1, 1], [1, 1]], [0, bad]), w)])
    except (ValueError, IndexError, tf.errors.OpError):
        agree(state(optimizer, w), before, f"after index {bad} was refused")
    else:
        raise AssertionError(f"index {bad} is accepted for a table of four rows")

"""Lines on how a class is run: functions, XLA, replicas, loss scale, constraints."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from tf_impl.contract.examine import NO_KERNEL, line
from tf_impl.contract.updates import BOTH
from tf_impl.contract.words import (
    START,
    agree,
    counted,
    part,
    small,
    state,
    stepper,
    trained,
)

MODES = [
    {"mode": mode, "gradients": gradients}
    for mode in ("'eager'", "'function'")
    for gradients in ("dense()", "sparse()")
]


@line("a function agrees with eager steps", BOTH)
def function(make, gradients, allowed):
    """A counter in Python runs while tracing, not while training: what depends on it
    stays at the first step."""
    optimizer = make()
    due = trained(optimizer, tf.Variable(START), gradients)
    got = trained(make(), tf.Variable(START), gradients, "function")
    agree(got, due, "after four steps of a function", allowed)


@line("nothing is traced after the first step", MODES)
def traced_once(make, mode, gradients):
    """To trace anew in each step (for a Python number that changes, say) costs a
    hundred times the step."""
    optimizer, w = make(), tf.Variable(START)
    step = stepper(optimizer, w, mode)
    step(gradients[0]), step(gradients[1])
    with counted(FuncGraph) as traced:
        step(gradients[2]), step(gradients[3])
    assert not traced, f"two later steps trace {len(traced)} functions ({mode})"


@line("XLA agrees", [{"gradients": "dense()"}], refusals=NO_KERNEL)
def xla(make, gradients, allowed):
    """`jit_compile=True` compiles the step, which may round otherwise but not
    do otherwise."""
    due = trained(make(), tf.Variable(START), gradients, "function")
    got = trained(make(), tf.Variable(START), gradients, "xla")
    agree(got, due, "compiled", allowed)


@line(
    "XLA agrees on sparse steps",
    [{"gradients": "sparse()"}],
    sparse=True,
    refusals=NO_KERNEL,
)
def xla_sparse(make, gradients, allowed):
    """Compiled code has no shapes that depend on numbers, so that the sum of duplicate
    rows is other code there."""
    due = trained(make(), tf.Variable(START), gradients, "function")
    got = trained(make(), tf.Variable(START), gradients, "xla")
    agree(got, due, "compiled", allowed)


@line("two replicas are one with the summed gradient", BOTH, replicas=True)
def replicas(make, gradients, allowed):
    """Under a strategy each replica has its copy of the weights: they must stay the
    same, and what one device would have with the sum of the gradients."""
    strategy = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice()
    )
    with strategy.scope():
        optimizer, w = make(), tf.Variable(START)

    @tf.function
    def step(gradient):
        def replica():
            me = tf.distribute.get_replica_context().replica_id_in_sync_group
            share = tf.constant([0.25, 0.75])[me]  # of dyadic numbers: the sum is exact
            optimizer.apply_gradients([(part(gradient, share), w)])

        strategy.run(replica)

    for gradient in gradients:
        step(gradient)
    copies = [strategy.experimental_local_results(x) for x in (w, *optimizer.weights)]
    first, second = zip(*((copy[0], copy[-1]) for copy in copies), strict=True)
    agree(second, first, "the second replica")
    single = trained(make(), tf.Variable(START), gradients, "function")
    agree(first, single, "two replicas", allowed)


@line("a loss scale changes nothing", [{"gradients": "dense()"}])
def loss_scale(make, keras, gradients):
    """In mixed precision the optimizer is wrapped: it gets gradients that were scaled
    and unscaled, which for a power of two is exact."""
    optimizer, w, plain, v = make(), tf.Variable(START), make(), tf.Variable(START)
    wrapper = keras.mixed_precision.LossScaleOptimizer
    scaled = wrapper(optimizer, dynamic=False, initial_scale=8)
    for g in gradients:
        unscaled = scaled.get_unscaled_gradients([8 * g])
        scaled.apply_gradients([(unscaled[0], w)])
        plain.apply_gradients([(g, v)])
    agree(state(optimizer, w), state(plain, v), "in a LossScaleOptimizer")


@line("a step that the loss scale skips changes nothing", [{"gradients": "dense()"}])
def skipped(make, keras, gradients):
    """An overflow in float16 is met by leaving out the step; weights and slots must not
    see its infinite gradient."""
    optimizer, w = make(), tf.Variable(START)
    scaled = keras.mixed_precision.LossScaleOptimizer(optimizer)
    scaled.apply_gradients([(gradients[0], w)])
    kept = [w, *(x for x in optimizer.weights if x is not optimizer.iterations)]
    before = [x.numpy() for x in kept]
    scaled.apply_gradients([(gradients[1] * np.inf, w)])
    agree([x.numpy() for x in kept], before, "after an infinite gradient")


@line(
    "a constraint holds after a step", [c for c in MODES if c["gradients"] == "dense()"]
)
def constraint(make, mode, gradients):
    """The constraint of a variable is applied to what the step makes of it; a class
    that overrides `_distributed_apply` or `apply_gradients` has to do that."""
    w, free = tf.Variable(START, constraint=small), tf.Variable(START)
    trained(make(), w, gradients[:1], mode), trained(make(), free, gradients[:1], mode)
    agree([w], [small(free)], f"weights under a constraint ({mode})")


@line(
    "a constraint holds after a sparse step",
    [c for c in MODES if c["gradients"] == "sparse()"],
    sparse=True,
    refusals={
        "Cannot use a constraint function on a sparse variable": (
            "the base class refuses a sparse gradient for a variable with a constraint"
        )
    },
)
def sparse_constraint(make, mode, gradients):
    """A table whose rows have a maximal norm has a constraint and sparse gradients."""
    w, free = tf.Variable(START, constraint=small), tf.Variable(START)
    trained(make(), w, gradients[:1], mode), trained(make(), free, gradients[:1], mode)
    agree([w], [small(free)], f"weights under a constraint ({mode})")

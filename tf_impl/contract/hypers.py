"""Lines on hyperparameters: what is set while training takes effect."""

import tensorflow as tf

from tf_impl.contract.examine import Subject, line
from tf_impl.contract.words import START, agree, dense, state, stepper, trained

IN_FUNCTION = "it does in a function that is already traced"


def modes(subject: Subject) -> list[dict[str, str]]:
    """Return a case for each mode in which a number can be set, to compare with."""
    found = ["eager"] if IN_FUNCTION in subject.broken else ["eager", "function"]
    return [{"mode": repr(mode), "gradients": "dense()"} for mode in found]


def numbers(subject: Subject) -> list[dict[str, str]]:
    """Return a case for each number that can be set, with another value."""
    changed = subject.changed_arguments()
    names = [name for name, value in subject.hypers.items() if value]
    names = [name for name in names if name not in subject.initial]
    if "learning_rate" in set(subject.defaults) - set(subject.hypers):
        names.append("learning_rate")
    return [
        {"hyper": repr(name), "value": repr(changed[name])}
        for name in names
        if name in changed
    ]


@line("a number set between steps takes effect", numbers)
def set_eagerly(make, hyper, value):
    """Whoever lowers the learning rate by hand or in a callback wants the next step to
    be that of an optimizer that was made with it."""
    optimizer, w = make(), tf.Variable(START)
    optimizer._create_all_weights([w])
    setattr(optimizer, hyper, value)
    due = trained(make(**{hyper: value}), tf.Variable(START), dense())
    agree(trained(optimizer, w, dense()), due, f"after {hyper} = {value}")
    return hyper


@line(IN_FUNCTION, numbers)
def set_in_function(make, hyper, value):
    """`Model.fit` traces its step once; a number that is read while tracing is frozen
    into it."""
    optimizer, w = make(), tf.Variable(START)
    step = stepper(optimizer, w, "function")
    step.get_concrete_function(dense()[0])
    setattr(optimizer, hyper, value)
    for gradient in dense():
        step(gradient)
    due = trained(make(**{hyper: value}), tf.Variable(START), dense(), "function")
    agree(state(optimizer, w), due, f"after {hyper} = {value} in a traced function")
    return hyper


@line("an integer learning rate is a number", argument="learning_rate")
def integer(make):
    """`SGD(1)` must not make an integer of every learning rate that is set later."""
    optimizer, w = make(learning_rate=1), tf.Variable(START)
    optimizer._create_all_weights([w])
    optimizer.learning_rate = 0.5
    due = trained(make(learning_rate=0.5), tf.Variable(START), dense())
    agree(trained(optimizer, w, dense()), due, "0.5 in the place of 1")


@line("a schedule advances", modes, argument="learning_rate", schedule=True)
def schedule(make, keras, mode, gradients, allowed):
    """A schedule is asked in every step, with the number of steps before it, in a
    function too."""
    rates = [0.5, 0.5, 0.25, 0.125]
    scheduled = keras.optimizers.schedules.PiecewiseConstantDecay([1, 2], rates[1:])
    got = trained(make(learning_rate=scheduled), tf.Variable(START), dense(), mode)
    optimizer, w = make(), tf.Variable(START)
    step = stepper(optimizer, w, mode)
    for rate, gradient in zip(rates, gradients, strict=True):
        optimizer.learning_rate = rate
        step(gradient)
    agree(got, state(optimizer, w), f"under a schedule, {mode}", allowed)


@line("a callable is asked in every step", modes, argument="learning_rate")
def callable_rate(make, mode, gradients, allowed):
    """The learning rate may be a function without arguments; what a variable in it
    holds counts, in a function too."""
    rate = tf.Variable(0.5)
    optimizer, w = make(learning_rate=lambda: rate), tf.Variable(START)
    twin, v = make(), tf.Variable(START)
    step, due = stepper(optimizer, w, mode), stepper(twin, v, mode)
    for now, gradient in zip((0.5, 0.25, 1.0, 0.125), gradients, strict=True):
        rate.assign(now)
        twin.learning_rate = now
        step(gradient), due(gradient)
    agree(state(optimizer, w), state(twin, v), f"under a callable, {mode}", allowed)


@line(
    "a schedule or callable takes the place of a number",
    [
        {"kind": "'schedule'"},
        {"kind": "'callable'"},
    ],
    argument="learning_rate",
)
def replaced(make, keras, kind):
    """A run that began with a number may go on with a schedule."""
    flat = keras.optimizers.schedules.PiecewiseConstantDecay([9], [0.25, 0.25])
    optimizer, w = make(), tf.Variable(START)
    optimizer._create_all_weights([w])
    optimizer.learning_rate = flat if kind == "schedule" else lambda: 0.25
    due = trained(make(learning_rate=0.25), tf.Variable(START), dense())
    agree(trained(optimizer, w, dense()), due, f"a {kind} of 0.25")

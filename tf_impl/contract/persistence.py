"""Lines on what outlives the object: config, weights list, checkpoint."""

import json
import tempfile

import tensorflow as tf

from tf_impl.contract.examine import Subject, line
from tf_impl.contract.words import START, agree, dense, slots, trained


def arguments(subject: Subject) -> list[dict[str, str]]:
    return [
        {"argument": repr(name), "value": repr(value)}
        for name, value in subject.changed_arguments().items()
        if name != "lr"
    ]


def changes(subject: Subject) -> list[dict[str, str]]:
    return [
        {"changed": "{}"},
        *(
            {"changed": f"{{{case['argument']}: {case['value']}}}"}
            for case in arguments(subject)
        ),
    ]


@line("get_config names every argument", arguments)
def complete_config(make, argument, value):
    """What `get_config` forgets comes back as the default, without a word."""
    forgets = make(**{argument: value}).get_config() == make().get_config()
    assert not forgets, f"get_config() is the same with {argument}={value!r}"


@line("from_config trains the same", changes)
def same_training(cls, make, changed):
    """A model that is saved and loaded, or cloned, must train as it did."""
    optimizer = make(**changed)
    copies = [cls.from_config(optimizer.get_config())]
    due = trained(optimizer, tf.Variable(START), dense())
    copies.append(cls.from_config(optimizer.get_config()))  # of variables, by now
    for copy in copies:
        got = trained(copy, tf.Variable(START), dense())
        agree(got, due, f"a copy of one with {changed or 'the defaults'}")


@line("the config is JSON, before and after training")
def json_config(make):
    """A model is saved with the config of its optimizer as JSON, mostly after
    training."""
    optimizer = make()
    json.dumps(optimizer.get_config())
    trained(optimizer, tf.Variable(START), dense())
    json.dumps(optimizer.get_config())


@line("a schedule comes back from the config", argument="learning_rate", schedule=True)
def schedule_config(cls, make, keras):
    """A schedule in the config is a dictionary; what makes no schedule of it again
    fails at the first step, after everything was saved."""
    rates = keras.optimizers.schedules.PiecewiseConstantDecay(
        [1, 2], [0.5, 0.25, 0.125]
    )
    optimizer = make(learning_rate=rates)
    copy = cls.from_config(json.loads(json.dumps(optimizer.get_config())))
    due = trained(optimizer, tf.Variable(START), dense())
    agree(trained(copy, tf.Variable(START), dense()), due, "under a schedule")


@line("the weights list continues the training")
def weights_list(make):
    """`get_weights` is all that a saved model keeps of the state: what is not in it,
    or in another order for a new object, is lost."""
    optimizer, w, other = make(), tf.Variable(START), tf.Variable(START)
    for g in dense()[:2]:
        optimizer.apply_gradients([(g, w), (2 * g, other)])
    copy, v, another = make(), tf.Variable(w), tf.Variable(other)
    copy._create_all_weights([v, another])
    copy.set_weights(optimizer.get_weights())
    for g in dense()[2:]:
        optimizer.apply_gradients([(g, w), (2 * g, other)])
        copy.apply_gradients([(g, v), (2 * g, another)])
    agree(
        [v, another, *copy.get_weights()],
        [w, other, *optimizer.get_weights()],
        "continued",
    )


@line(
    "a checkpoint continues the training",
    [{"built": "False"}, {"built": "True"}],
)
def checkpoint(make, built):
    """A run that was stopped goes on as if it had not been; whether the checkpoint is
    read before the variables exist, or after."""
    optimizer, w, copy, v = make(), tf.Variable(START), make(), tf.Variable(0 * START)
    trained(optimizer, w, dense()[:2])
    if built:
        trained(copy, v, dense()[2:])
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(optimizer=optimizer, w=w).write(folder + "/x")
        reader = tf.train.Checkpoint(optimizer=copy, w=v)
        reader.read(path)
        for each, x in ((optimizer, w), (copy, v)):
            trained(each, x, dense()[2:])
    when = "after" if built else "before"
    got, due = [v, *slots(copy, v).values()], [w, *slots(optimizer, w).values()]
    agree(got, due, f"continued from a checkpoint read {when} variables exist")

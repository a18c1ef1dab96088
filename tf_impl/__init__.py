"""The optimizers of `reference`, as TensorFlow `OptimizerV2` subclasses to train with.

Every class takes the constructor arguments, and has the slots, weight order and config,
of the class of the same name in `tf.keras.optimizers.legacy`.
"""

from tf_impl.base import Optimizer
from tf_impl.optimizers.adadelta import Adadelta
from tf_impl.optimizers.adagrad import Adagrad
from tf_impl.optimizers.adam import Adam
from tf_impl.optimizers.adamax import Adamax
from tf_impl.optimizers.ftrl import Ftrl
from tf_impl.optimizers.nadam import Nadam
from tf_impl.optimizers.rmsprop import RMSprop
from tf_impl.optimizers.sgd import SGD

OPTIMIZERS: dict[str, type[Optimizer]] = {
    cls.__name__: cls
    for cls in (SGD, Adagrad, Adadelta, RMSprop, Adam, Adamax, Nadam, Ftrl)
}

__all__ = [
    "OPTIMIZERS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "Adamax",
    "Ftrl",
    "Nadam",
    "Optimizer",
    "RMSprop",
]

"""The first step size of Rprop."""

import pytest
import tensorflow as tf

import tf_impl
from tests.tf_impl.cases import train, variable
from tf_impl.legacy_keras import keras


@pytest.mark.parametrize(
    "rate",
    [
        0.25,
        lambda: 0.25,
        lambda: tf.constant(0.25),
        keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.25, 8.0]),
    ],
    ids=["number", "callable", "tensor", "schedule"],
)
@pytest.mark.parametrize("mode", ["eager", "function"])
def test_it_is_the_learning_rate_of_the_first_step(rate, mode):
    w, optimizer = variable(), tf_impl.Rprop(rate)
    train(optimizer, w, mode=mode, steps=[0])
    assert (variable() - w).numpy().tolist() == [[0.25, 0.25]] * 4


def test_later_learning_rates_have_no_effect_on_a_variable_but_on_the_next():
    optimizer = tf_impl.Rprop(0.25, eta_plus=1.0)
    w, late = variable(), variable()
    train(optimizer, w, steps=[0])
    optimizer.learning_rate = 1.0
    train(optimizer, w, steps=[1])
    train(optimizer, late, steps=[1])
    assert (variable() - w).numpy().tolist() == [[0.5, 0.5]] * 4
    assert (variable() - late).numpy().tolist() == [[1.0, 1.0]] * 4

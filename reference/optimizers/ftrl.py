"""FTRL-Proximal: follow the regularised leader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Slot, rule
from ..sparse import touched_rows


@dataclass(frozen=True)
class Ftrl(Optimizer):
    """FTRL-Proximal.

    McMahan et al., *Ad Click Prediction: a View from the Trenches*, KDD 2013,
    algorithm 1 (``l1``, ``beta``; their ``lambda_2`` is ``2 * l2`` here), with
    TensorFlow's l2 shrinkage.

    Args:
        learning_rate: ``(0, inf)``: the rule divides by it.
        learning_rate_power: minus the power of the accumulator that divides the
            learning rate; ``(-inf, 0]``; -0.5 is the paper's root.
        initial_accumulator_value: where the sum of squares starts; ``[0, inf)``.
        l1_regularization_strength: ``[0, inf)``.
        l2_regularization_strength: a stabiliser; ``[0, inf)``.
        l2_shrinkage_regularization_strength: a penalty on the weights, added to the
            gradient but not to the accumulator; ``[0, inf)``.
        beta: added to the root in the learning rate, over two; ``[0, inf)``.

    Slots: ``accumulator`` (``n``), the sum of squared gradients; ``linear`` (``z``).
    **The weight is a function of ``z`` and ``n`` alone**: with ``z`` starting at zero,
    the first gradient, even a zero one, discards the initial weight. No equation asks
    for initial weights other than zero; legacy Keras does the same. A sparse gradient
    changes touched rows only, so that others keep their initial weights. A NaN gradient
    gives NaN (legacy Keras' dense kernel gives 0); where ``n`` stays zero the weight is
    0 (its sparse kernel gives NaN).

    >>> ftrl = Ftrl(learning_rate=1.0, initial_accumulator_value=9.0)
    >>> w, state = ftrl.run(np.array([0.0]), [np.array([4.0])])
    >>> w.tolist(), state.slots[0]["linear"].tolist()
    ([-0.8], [4.0])
    """

    learning_rate: Hyper = hyper(0.001, "(0, inf)")
    learning_rate_power: Hyper = hyper(-0.5, "(-inf, 0]")
    initial_accumulator_value: float = hyper(0.1, "[0, inf)")
    l1_regularization_strength: Hyper = hyper(0.0, "[0, inf)")
    l2_regularization_strength: Hyper = hyper(0.0, "[0, inf)")
    l2_shrinkage_regularization_strength: float = hyper(0.0, "[0, inf)")
    beta: Hyper = hyper(0.0, "[0, inf)")

    home: ClassVar[str] = "tf.keras.optimizers.legacy.Ftrl"
    paper: ClassVar[str] = "McMahan et al. 2013"
    examples: ClassVar = (
        {},
        {
            "l1_regularization_strength": 0.01,
            "l2_regularization_strength": 0.05,
            "l2_shrinkage_regularization_strength": 0.02,
            "beta": 0.1,
        },
        {"learning_rate_power": -0.7},
    )

    @rule(
        n=Slot("accumulator", start="initial_accumulator_value"),
        z="linear",
        sparse=touched_rows,
    )
    def ftrl(
        w,
        g,
        n,
        z,
        learning_rate,
        learning_rate_power,
        l1_regularization_strength,
        l2_regularization_strength,
        l2_shrinkage_regularization_strength,
        beta,
    ):
        g_shrunk = g + 2 * l2_shrinkage_regularization_strength * w
        root = n**-learning_rate_power
        n = n + g**2
        new_root = n**-learning_rate_power
        z = z + g_shrunk - (new_root - root) / learning_rate * w
        stabiliser = 2 * l2_regularization_strength + beta / learning_rate
        pull = np.sign(z) * l1_regularization_strength - z
        shrunk = pull / (new_root / learning_rate + stabiliser)
        w = np.where(np.abs(z) <= l1_regularization_strength, 0, shrunk)
        return w, n, z

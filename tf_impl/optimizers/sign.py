"""SignSGD and Signum: the TensorFlow side of `reference/optimizers/sign.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.tensors import Tensor


def _sign_sgd(w, g, learning_rate):
    w = w - learning_rate * tf.sign(g)
    return (w,)


def _signum(w, g, m, learning_rate, beta, one_minus_beta):
    m = beta * m + one_minus_beta * g
    w = w - learning_rate * tf.sign(m)
    return w, m


class SignSGD(Optimizer):
    """Descent by the sign of the gradient (Bernstein, Wang, Azizzadenesheli,
    Anandkumar, 2018, arXiv:1802.04434, algorithm 1 for one worker).

    Args:
        learning_rate: length of every step: number, schedule, callable or scalar
            tensor, 0.01.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows (a zero gradient changes nothing anyway).
    """

    def __init__(
        self, learning_rate: Any = 0.01, name: str = "SignSGD", **kwargs: Any
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._define(_sign_sgd, {})

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        return {"learning_rate": learning_rate}

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
        }


class Signum(Optimizer):
    """Descent by the sign of an average of gradients (Bernstein, Wang, Azizzadenesheli,
    Anandkumar, 2018, arXiv:1802.04434, algorithm 2).

    Takes the arguments of `optax.signum`.

    Slot `m`: the average of gradients.

    Args:
        learning_rate: length of every step: number, schedule, callable or scalar
            tensor, 0.01.
        beta: decay of `m`, 0 to below 1, default 0.9.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row, as the dense gradient with zeros elsewhere.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        beta: Any = 0.9,
        name: str = "Signum",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta", beta)
        self._define(_signum, {"m": 0.0}, every_row=("w", "m"))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta = self._real_hyper("beta")
        return {
            "learning_rate": learning_rate,
            "beta": beta,
            "one_minus_beta": 1 - beta,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta"),
        }

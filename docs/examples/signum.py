"""A small custom `OptimizerV2`: Signum, sign descent on a running mean of gradients.

Bernstein, Wang, Azizzadenesheli, Anandkumar (2018), "signSGD: Compressed Optimisation
for Non-Convex Problems", arXiv 1802.04434, algorithm 2.  It is here because it is
short and still needs everything that a real optimizer needs: a slot, coefficients, a
dense and a sparse rule, and a sum of duplicates that is not optional.  Copy it and
change the rule.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

try:  # TensorFlow 2.16 and later, with the package tf-keras
    from tf_keras.optimizers.legacy import Optimizer
except ImportError:  # TensorFlow 2.11 to 2.15
    Optimizer = tf.keras.optimizers.legacy.Optimizer


class Signum(Optimizer):
    """Step by the sign of a running mean of gradients.

    ::

        m = momentum * m + (1 - momentum) * g
        w = w - learning_rate * sign(m)

    A sparse gradient changes `m` and `w` on the rows it names and on no other ("lazy").

    Args:
        learning_rate: float, tensor, callable or `LearningRateSchedule`; the length of
            every step.
        momentum: float in [0, 1); how much of the old mean is kept.
        name: prefix of the names of the slots.
        **kwargs: `clipnorm`, `clipvalue`, `global_clipnorm`, `decay`, `lr`,
            `gradient_transformers`, `gradient_aggregator`: all handled by the base.

    Raises:
        ValueError: `momentum` is outside [0, 1).
    """

    # Keras passes `experimental_aggregate_gradients` only to classes that say so.
    _HAS_AGGREGATE_GRAD = True

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.9,
        name: str = "Signum",
        **kwargs: Any,
    ) -> None:
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must be in [0, 1), not {momentum!r}")
        super().__init__(name, **kwargs)
        learning_rate = kwargs.get("lr", learning_rate)
        if isinstance(learning_rate, int):  # the base class would keep it in an int32
            learning_rate = float(learning_rate)
        self._set_hyper("learning_rate", learning_rate)
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("momentum", float(momentum))

    def _create_slots(self, var_list: list[tf.Variable]) -> None:
        for var in var_list:
            self.add_slot(var, "m")

    def _prepare_local(
        self, var_device: str, var_dtype: tf.DType, apply_state: dict
    ) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)  # "lr_t"
        momentum = tf.identity(self._get_hyper("momentum", var_dtype))
        apply_state[var_device, var_dtype].update(
            momentum=momentum, one_minus_momentum=1 - momentum
        )

    def _coefficients(self, var: tf.Variable, apply_state: dict | None) -> dict:
        key = var.device, var.dtype.base_dtype
        return (apply_state or {}).get(key) or self._fallback_apply_state(*key)

    def _resource_apply_dense(
        self, grad: tf.Tensor, var: tf.Variable, apply_state: dict | None = None
    ) -> Any:
        c = self._coefficients(var, apply_state)
        m = self.get_slot(var, "m")
        m_new = m.assign(c["momentum"] * m + c["one_minus_momentum"] * grad)
        return var.assign_sub(c["lr_t"] * tf.sign(m_new))

    def _resource_apply_sparse(
        self,
        grad: tf.Tensor,
        var: tf.Variable,
        indices: tf.Tensor,
        apply_state: dict | None = None,
    ) -> Any:
        c = self._coefficients(var, apply_state)
        m = self.get_slot(var, "m")
        m_rows = c["momentum"] * tf.gather(m, indices) + c["one_minus_momentum"] * grad
        step = -c["lr_t"] * tf.sign(m_rows)
        return tf.group(
            tf.raw_ops.ResourceScatterUpdate(
                resource=m.handle, indices=indices, updates=m_rows
            ),
            tf.raw_ops.ResourceScatterAdd(
                resource=var.handle, indices=indices, updates=step
            ),
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "learning_rate": self._serialize_hyperparameter("learning_rate"),
            "decay": self._initial_decay,
            "momentum": self._serialize_hyperparameter("momentum"),
        }

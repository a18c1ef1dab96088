"""LossScaleOptimizer: the TensorFlow side of `reference/wrappers/loss_scale.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_impl.tensors import Tensor
from tf_impl.wrapper import (
    LOSS_SCALE,
    Wrapper,
    across_replicas,
    in_each_replica,
    only_if,
    whole,
)

INITIAL_SCALE = 2.0**15
GROWTH_STEPS = 2000


class LossScaleOptimizer(Wrapper):
    """Loss scaling for float16 (Micikevicius et al., 2017, arXiv:1710.03740, section
    3.2): a step whose gradients are not finite is skipped.

    `minimize`, and so Keras' `fit`, scales the loss and unscales the gradients. In a
    loop of your own: differentiate `get_scaled_loss(loss)`, and give to
    `apply_gradients` what `get_unscaled_gradients` makes of the gradients.

    Args:
        optimizer: the inner optimizer, as in `tf_impl.wrapper.Wrapper`.
        dynamic: whether the scale adapts, and steps are skipped.
        initial_scale: 2**15; must be given where it stays fixed.
        dynamic_growth_steps: so many good steps in a row double the scale, 2000. A
            skipped one halves it, down to 1.
        name: as in `tf_impl.wrapper.Wrapper`.

    A skipped step changes nothing but the scale: neither slots nor the step count
    (Keras' class of this name counts it). Under Keras' policy `mixed_float16`,
    `compile` puts that one around every other optimizer: there, leave this one out.

    Raises:
        TypeError, ValueError: an argument outside its domain.
    """

    _place = LOSS_SCALE

    def __init__(
        self,
        optimizer: Any,
        dynamic: bool = True,
        initial_scale: float | None = None,
        dynamic_growth_steps: int | None = None,
        name: str = "LossScaleOptimizer",
        **kwargs: Any,
    ) -> None:
        super().__init__(optimizer, name, **kwargs)
        if not dynamic and initial_scale is None:
            raise ValueError("`initial_scale` must be given where `dynamic` is False")
        if not dynamic and dynamic_growth_steps is not None:
            raise ValueError("`dynamic_growth_steps` is for a dynamic scale only")
        scale = INITIAL_SCALE if initial_scale is None else float(initial_scale)
        if not 1 <= scale < float("inf"):
            raise ValueError(f"`initial_scale` must be at least 1, not {initial_scale}")
        self.dynamic = dynamic
        self.initial_scale = scale
        self.dynamic_growth_steps = None
        if dynamic:
            steps = dynamic_growth_steps or GROWTH_STEPS
            self.dynamic_growth_steps = whole("dynamic_growth_steps", steps, 1)
        self._scale: Any = None
        self._good_steps: Any = None

    @property
    def loss_scale(self) -> Tensor:
        """The present scale, a float32 scalar."""
        if not self.dynamic:
            return tf.constant(self.initial_scale, tf.float32)
        with tf.init_scope():
            self._create_state()
        return self._scale.read_value()

    def get_scaled_loss(self, loss: Any) -> Any:
        """Return the loss times the scale; a callable for a callable."""
        if callable(loss):
            return lambda: self.get_scaled_loss(loss())
        return loss * tf.cast(self.loss_scale, loss.dtype)

    def get_unscaled_gradients(self, grads: Sequence[Any]) -> list[Any]:
        """Return the gradients, of the scaled loss, divided by the scale."""
        inverse = 1 / self.loss_scale

        def unscaled(grad: Any) -> Any:
            if grad is None:
                return None
            if isinstance(grad, tf.IndexedSlices):
                values = unscaled(grad.values)
                return tf.IndexedSlices(values, grad.indices, grad.dense_shape)
            return grad * tf.cast(inverse, grad.dtype)

        return [unscaled(grad) for grad in grads]

    def _compute_gradients(
        self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
    ) -> Any:
        tape = tf.GradientTape() if tape is None else tape
        if not callable(loss):
            with tape:
                loss = self.get_scaled_loss(loss)
        pairs = self._optimizer._compute_gradients(
            self.get_scaled_loss(loss) if callable(loss) else loss,
            var_list,
            grad_loss,
            tape=tape,
        )
        grads = self.get_unscaled_gradients([grad for grad, _ in pairs])
        return [(grad, var) for grad, (_, var) in zip(grads, pairs, strict=True)]

    @tf.autograph.experimental.do_not_convert
    def apply_gradients(
        self,
        grads_and_vars: Any,
        name: str | None = None,
        experimental_aggregate_gradients: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Take a step of the inner optimizer if all gradients, unscaled, are finite.

        Args:
            grads_and_vars: as in Keras.
            name: of the operations.
            experimental_aggregate_gradients: as in Keras.
            **kwargs: for the inner optimizer's `apply_gradients`.
        """
        pairs = [(grad, var) for grad, var in grads_and_vars if grad is not None]
        if not self.dynamic or not pairs:
            return self._optimizer.apply_gradients(
                pairs,
                name=name,
                experimental_aggregate_gradients=experimental_aggregate_gradients,
                **kwargs,
            )
        with tf.init_scope():
            self._create_all_weights([var for _, var in pairs])
        if experimental_aggregate_gradients:
            pairs = self._transform_unaggregated_gradients(pairs)
            pairs = self._aggregate_gradients(pairs)
        finite = tf.reduce_all([_is_finite(grad) for grad, _ in pairs])

        variables = [var for _, var in pairs]

        def step(grads: Sequence[Any]) -> Any:
            return self._optimizer.apply_gradients(
                zip(grads, variables, strict=True),
                name=name,
                experimental_aggregate_gradients=False,
                **kwargs,
            )

        grads = [grad for grad, _ in pairs]
        return across_replicas(self._step_if, (finite, grads), step)

    def _step_if(self, strategy: Any, given: Any, step: Any) -> Any:
        finite, grads = given
        finite = strategy.experimental_local_results(finite)[0]
        return tf.group(
            only_if(finite, lambda: in_each_replica(strategy, step, grads)),
            self._adapt(finite),
        )

    def _adapt(self, finite: Tensor) -> Any:
        scale, good_steps = self._scale.read_value(), self._good_steps.read_value()
        grows = good_steps + 1 == self.dynamic_growth_steps
        higher = tf.where(grows, scale * 2, scale)
        lower = tf.maximum(scale / 2, 1)
        zero = tf.zeros_like(good_steps)
        row = tf.where(finite & ~grows, good_steps + 1, zero)
        return tf.group(
            self._scale.assign(tf.where(finite, higher, lower), read_value=False),
            self._good_steps.assign(row, read_value=False),
        )

    def _create_all_weights(self, var_list: Sequence[tf.Variable]) -> None:
        super()._create_all_weights(var_list)
        self._create_state()

    def _create_state(self) -> None:
        if self.dynamic and self._scale is None:
            scale = self.initial_scale
            self._scale = self._counter("loss_scale", scale, tf.float32)
            self._good_steps = self._counter("good_steps", 0, tf.int64)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "dynamic": self.dynamic,
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }


def _is_finite(grad: Any) -> Tensor:
    values = grad.values if isinstance(grad, tf.IndexedSlices) else grad
    return tf.reduce_all(tf.math.is_finite(values))

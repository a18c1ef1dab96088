"""What the check found in released libraries, and a few lines that show it.

Each reproduction runs in the tests, so that a library that is mended is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A way in which optimizers of a library differ from the rule that they follow.

    Attributes:
        sentence: what happens, for people.
        libraries: keys of ``LIBRARIES``.
        optimizers: patterns of their labels in a report card.
        gradients: among ``"dense"`` and ``"sparse"``.
        code: a program that ends without an error while it is so.
        modes, dtypes: where it is seen; everywhere if empty.
        words: words in the failure, by which it is told from others; any if empty.
    """

    sentence: str
    libraries: tuple[str, ...]
    optimizers: tuple[str, ...]
    gradients: tuple[str, ...]
    code: str
    modes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    words: str = ""


FINDINGS: tuple[Finding, ...] = (
    Finding(
        "A fused SGD step on CPU moves half-precision weights only where they do not "
        "fill a vector register: from step 1, a weight of 64 numbers stays as it is",
        ("torch",),
        ("SGD*",),
        ("dense",),
        """
import torch
w = torch.nn.Parameter(torch.zeros(64, dtype=torch.bfloat16))
w.grad = torch.ones_like(w)
torch.optim.SGD([w], lr=1.0, fused=True).step()
assert w.count_nonzero() == 0
""",
        ("fused",),
        ("float16", "bfloat16"),
    ),
    Finding(
        "Fused SGD with momentum raises a TypeError at the step at which a weight has "
        "its first gradient later than others",
        ("torch",),
        ("SGD*",),
        ("dense",),
        """
import torch
a, b = (torch.nn.Parameter(torch.zeros(1)) for _ in range(2))
sgd = torch.optim.SGD([a, b], lr=1.0, momentum=0.5, fused=True)
a.grad = torch.ones(1); sgd.step(); b.grad = torch.ones(1)
try: sgd.step()
except TypeError as error: assert "but got NoneType" in str(error)
else: raise AssertionError("mended")
""",
        ("fused",),
        words="NoneType",
    ),
    Finding(
        "The velocity of sparse gradients is never summed: it gains entries at every "
        "step, and each is rounded into the weight on its own",
        ("torch",),
        ("SGD(*momentum=*",),
        ("sparse",),
        """
import torch
w = torch.nn.Parameter(torch.zeros(2, 1))
sgd = torch.optim.SGD([w], lr=1.0, momentum=0.5)
for _ in range(4):
    w.grad = torch.sparse_coo_tensor([[0, 1]], [[1.0], [1.0]], (2, 1)); sgd.step()
    w.grad = torch.sparse_coo_tensor([[1, 0]], [[1.0], [1.0]], (2, 1)); sgd.step()
assert sgd.state[w]["momentum_buffer"]._nnz() > 2
""",
    ),
    Finding(
        "The variance of centered RMSprop rounds below zero on a constant gradient, "
        "and its root is NaN",
        ("torch", "optax", "keras", "tf_keras", "tf_keras.legacy"),
        ("RMSprop(*centered=True*", "rmsprop(*centered=True*"),
        ("dense", "sparse"),
        """
import torch
w = torch.nn.Parameter(torch.zeros(64))
rmsprop = torch.optim.RMSprop([w], centered=True)
for _ in range(2000):
    w.grad = torch.linspace(0.1, 7.0, 64); rmsprop.step()
assert w.isnan().any()
""",
        words="nan for",
    ),
    Finding(
        "Rows that share an index are not summed: from step 1 each enters a second "
        "moment with its own square, or one of them alone enters a maximum",
        ("keras",),
        ("*",),
        ("sparse",),
        """
import keras, tensorflow as tf
w = keras.Variable([0.0])
adagrad = keras.optimizers.Adagrad(1.0, initial_accumulator_value=0.0)
adagrad.apply([tf.IndexedSlices([1.0, 1.0], [0, 0], (1,))], [w])
assert w.numpy()[0] < -1.4  # -1 is due: the gradient is 2, its square 4, not 2
""",
    ),
    Finding(
        "In a tf.function Nadam multiplies its momentum product once for each trace of "
        "its Python counter, not once a step: with two weights it is wrong from step 2 "
        "on, with three from step 1",
        ("tf_keras",),
        ("Nadam*",),
        ("dense", "sparse"),
        """
import tf_keras, tensorflow as tf
w = [tf.Variable(1.0) for _ in range(3)]
nadam = tf_keras.optimizers.Nadam(); nadam.build(w)
tf.function(lambda: nadam.apply_gradients([(1.0 * v, v) for v in w]))()
mu = 0.9 * (1 - 0.5 * 0.96)  # the product after one step
assert abs(float(nadam._u_product) - mu**2) < abs(float(nadam._u_product) - mu)
""",
        ("function", "xla"),
    ),
    Finding(
        "In float16 a gradient of zero gives NaN at step 1: epsilon times "
        "1 - beta_1**t is zero",
        ("keras", "tf_keras"),
        ("Adamax*",),
        ("dense",),
        """
import keras
w = keras.Variable([1.0], dtype="float16")
keras.optimizers.Adamax().apply([keras.ops.zeros(1, "float16")], [w])
assert keras.ops.any(keras.ops.isnan(w))
""",
        dtypes=("float16",),
    ),
    Finding(
        "In float16 a gradient of zero gives NaN at step 1: one over epsilon, as which "
        "the scale of the step is formed first, overflows",
        ("optax",),
        ("rmsprop(*eps_in_sqrt=False*",),
        ("dense",),
        """
import optax, jax.numpy as jnp
rmsprop = optax.rmsprop(1.0, eps=1e-7, eps_in_sqrt=False)
w = jnp.zeros(1, "float16")
updates, _ = rmsprop.update(w, rmsprop.init(w))
assert jnp.isnan(updates[0])
""",
        dtypes=("float16",),
    ),
    Finding(
        "After a first gradient of zero the next step is 1 / sqrt(1 - b2) times too "
        "long: the second moment takes the first gradient whole, by the count alone",
        ("optax",),
        ("novograd*",),
        ("dense",),
        """
import optax, jax.numpy as jnp
novograd = optax.novograd(1.0, b1=0.0, b2=0.75, eps=1e-9)
w = jnp.zeros(1)
_, state = novograd.update(jnp.zeros(1), novograd.init(w), w)
update, _ = novograd.update(jnp.ones(1), state, w)
assert update[0] < -1.99  # -1 is due: a gradient over its own norm
""",
    ),
    Finding(
        "The average that a sparse gradient makes is a rewrite that cancels: it is "
        "wrong by several roundings, from step 1",
        ("tf_keras",),
        ("Lion*",),
        ("sparse",),
        """
import tf_keras, tensorflow as tf, numpy as np
w = tf.Variable([0.0])
lion = tf_keras.optimizers.Lion()
lion.apply_gradients([(tf.IndexedSlices([1.0], [0], (1,)), w)])
error = abs(lion.momentums[0].numpy()[0] - 0.01)
assert error > 4 * np.spacing(np.float32(0.01))
""",
    ),
    Finding(
        "Every step is taken one step late: the weights move by the update that was "
        "kept, not by the one that is new",
        ("optax",),
        ("rprop*",),
        ("dense",),
        """
import optax, jax.numpy as jnp
rprop = optax.rprop(1.0)
update, _ = rprop.update(jnp.ones(1), rprop.init(jnp.zeros(1)))
assert update[0] == 0  # -1 is due
""",
    ),
    Finding(
        "A learning rate that is set takes effect one step late: the rate of a step is "
        "formed at the end of the one before",
        ("torch",),
        ("ASGD*",),
        ("dense",),
        """
import torch
w = torch.nn.Parameter(torch.zeros(1))
asgd = torch.optim.ASGD([w], lr=1.0, lambd=0.0)
asgd.param_groups[0]["lr"] = 0.5; w.grad = torch.ones(1); asgd.step()
assert w.item() == -0.5
before = w.item(); asgd.param_groups[0]["lr"] = 0.25; asgd.step()
assert w.item() - before == -0.5  # -0.25 is due
""",
    ),
    Finding(
        "From step 2 no sign is seen in gradients whose product underflows: a step "
        "that should shrink or grow does neither",
        ("torch",),
        ("Rprop*",),
        ("dense",),
        """
import torch
w = torch.nn.Parameter(torch.zeros(1))
rprop = torch.optim.Rprop([w], lr=1.0)
for g in (1e-30, -1e-30):
    w.grad = torch.tensor([g]); rprop.step()
assert rprop.state[w]["step_size"] == 1  # 0.5 is due
""",
    ),
    Finding(
        "The old z is read after it has become the new one, so that from step 2 the "
        "weights are not the interpolation that they should be",
        ("keras",),
        ("ScheduleFreeAdamW*",),
        ("dense",),
        """
import keras
w = keras.Variable([0.0])
free = keras.optimizers.ScheduleFreeAdamW(1.0, beta_1=0.5, beta_2=0.0, epsilon=0.0)
for _ in range(2):
    free.apply([keras.ops.ones(1)], [w])
assert w.numpy()[0] == -1.5  # -1.75 is due: z is -1, -2, its average -1, -1.5
""",
    ),
    Finding(
        "Small gradients are lost from step 1: learning_rate * m underflows before it "
        "is divided by the norm",
        ("keras", "tf_keras"),
        ("Adamax*",),
        ("dense",),
        """
import keras
w = keras.Variable([0.0])
adamax = keras.optimizers.Adamax(0.001, epsilon=1e-30)
adamax.apply([keras.ops.convert_to_tensor([1e-35])], [w])
assert w.numpy()[0] == 0  # 1e-8 is due, 0.001 * 1e-35 / 1e-30
""",
    ),
    Finding(
        "Small gradients are lost: the root of the mean squared step, times the "
        "gradient, underflows before it is divided by that of the gradient",
        ("keras", "tf_keras"),
        ("Adadelta*",),
        ("dense",),
        """
import keras
w = keras.Variable([0.0])
adadelta = keras.optimizers.Adadelta(1.0, epsilon=1e-8)
adadelta.apply([keras.ops.convert_to_tensor([1e-35])], [w])
assert w.numpy()[0] == 0  # -1e-35 is due: both roots are 1e-4
""",
    ),
    Finding(
        "The default epsilon is zero in float16: a gradient of zero gives NaN at step "
        "1, a small one infinity",
        ("torch",),
        ("Adam*",),
        ("dense",),
        """
import torch
w = torch.nn.Parameter(torch.zeros(1, dtype=torch.float16))
w.grad = torch.zeros_like(w)
torch.optim.Adam([w], foreach=False).step()
assert w.isnan().all()
""",
        ("loop", "foreach"),
        ("float16",),
    ),
)
"""A failure belongs to the first finding that fits."""

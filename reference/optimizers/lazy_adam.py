"""LazyAdam: Adam that leaves untouched rows alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..rule import Rule
from ..sparse import touched_rows
from .adam import Adam


@dataclass(frozen=True)
class LazyAdam(Adam):
    """Adam whose home policy for sparse gradients is that of touched rows.

    Kingma, Ba, *Adam: A Method for Stochastic Optimization*, 2014, arXiv:1412.6980; the
    lazy form is TensorFlow's own. The rules, arguments and slots are those of ``Adam``,
    and on dense gradients nothing differs. ``t`` counts all steps, not those of a row,
    as in TensorFlow Addons and ``torch.optim.SparseAdam``. With amsgrad the maximum is
    kept on touched rows; Addons forgets it there.

    >>> adam = LazyAdam(learning_rate=0.5, beta_1=0.5, beta_2=0.75, epsilon=0.0)
    >>> row = reference.IndexedSlices(np.array([2.0]), np.array([1]))
    >>> w, state = adam.run(np.array([1.0, 1.0]), [np.array([2.0, 2.0]), row])
    >>> w[0].item(), state.slots[0]["m"].tolist()
    (0.5, [1.0, 1.5])
    """

    home: ClassVar[str] = "tensorflow_addons.optimizers.LazyAdam"

    lazy_adam = replace(Adam.adam, sparse=touched_rows)
    lazy_amsgrad = replace(Adam.amsgrad_rule, sparse=touched_rows)

    @property
    def selected(self) -> Rule:
        return LazyAdam.lazy_amsgrad if self.amsgrad else LazyAdam.lazy_adam

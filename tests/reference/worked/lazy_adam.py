"""LazyAdam: Adam's numbers, without what Adam does to untouched rows."""

from __future__ import annotations

import reference
from tests.reference.worked import keras, worked

EVERY_ROW = {"LazyAdam": set()}


def lazily(case, opt):
    """Row 0, which the second step does not touch, stays as the first left it."""
    _, dense, [first, (w, slots)] = case()
    kept, kept_slots = first
    second = (
        [kept[0], *w[1:]],
        {name: [kept_slots[name][0], *values[1:]] for name, values in slots.items()},
    )
    return opt, dense, [first, second]


@worked
def lazy_adam():
    opt = reference.LazyAdam(0.5, beta_1=0.25, beta_2=0.75, epsilon=0.25)
    return lazily(keras.adam, opt)


@worked
def lazy_amsgrad():
    opt = reference.LazyAdam(0.5, 0.25, 0.75, 0.25, amsgrad=True)
    return lazily(keras.amsgrad, opt)

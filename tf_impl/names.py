"""Variables picked out by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

import tensorflow as tf

from tf_impl.tensors import container


def named_in(var: tf.Variable, patterns: Iterable[str]) -> bool:
    """Return whether a pattern is found in the variable's name (`re.search`).

    The name is that of the first replica, with and without the `:0` at its end.
    """
    whole = container(var).name
    names = (whole, whole.removesuffix(":0"))
    return any(re.search(pattern, name) for pattern in patterns for name in names)

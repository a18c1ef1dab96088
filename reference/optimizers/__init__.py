"""The specification: one file per family, named as in ``tf_impl/optimizers``."""

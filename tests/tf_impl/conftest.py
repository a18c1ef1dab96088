"""Two logical CPUs, for tf.distribute: asked for before TensorFlow starts."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pytest
import tensorflow as tf

_cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    _cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)


@pytest.fixture(autouse=True, params=["CPU", "GPU"])
def device(request):
    """Every test runs on each device that TensorFlow sees."""
    gpus = tf.config.list_physical_devices("GPU")
    if request.param == "GPU" and not gpus:
        pytest.skip("TensorFlow sees no GPU here")
    if request.param == "CPU" and gpus:
        with tf.device("CPU:0"):
            yield
    else:
        yield


@pytest.fixture
def compile_all(monkeypatch):
    """Compile variables of every size, as only large ones are otherwise."""
    monkeypatch.setattr("tf_impl.updates.COMPILE_FROM_ELEMENTS", 1)

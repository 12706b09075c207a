"""The active `tf.distribute` strategy."""

from typing import Any

from keras_seq.backend.device import name


def strategy_of_all_replicas() -> Any:
    """The `tf.distribute` strategy in a cross-replica context, otherwise None."""
    if name() == "tensorflow":
        import tensorflow as tf

        if tf.distribute.in_cross_replica_context():
            return tf.distribute.get_strategy()
    return None


def strategy_of_this_replica() -> Any:
    """The `tf.distribute` strategy in a replica context, otherwise None.

    The result is also None for `OneDeviceStrategy`, which behaves as if there were no strategy.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        strategy = tf.distribute.get_strategy()
        if (
            tf.distribute.has_strategy()
            and not tf.distribute.in_cross_replica_context()
            and not isinstance(strategy, tf.distribute.OneDeviceStrategy)
        ):
            return strategy
    return None

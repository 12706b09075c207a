"""The `tf.distribute` strategy that is active."""

from typing import Any

from keras_seq.backend.device import name


def strategy_of_all_replicas() -> Any:
    """The `tf.distribute` strategy whose replicas are all seen here, None within one of them."""
    if name() == "tensorflow":
        import tensorflow as tf

        if tf.distribute.in_cross_replica_context():
            return tf.distribute.get_strategy()
    return None


def strategy_of_this_replica() -> Any:
    """The `tf.distribute` strategy within one of whose replicas this is, None elsewhere.

    That of one device is none of these: within it all is as without.
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

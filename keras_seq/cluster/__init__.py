"""Devices and hosts that share a training."""

from keras_seq.cluster.alone import Cluster, PartsOf
from keras_seq.cluster.starting import configure, start_cluster, wake

__all__ = ["Cluster", "PartsOf", "configure", "start_cluster", "wake"]

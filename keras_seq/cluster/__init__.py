"""Devices and hosts that share a training."""

from keras_seq.cluster.alone import Cluster, PartsOf
from keras_seq.cluster.starting import configure, initialize, start_cluster

__all__ = ["Cluster", "PartsOf", "configure", "start_cluster", "initialize"]

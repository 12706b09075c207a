"""Devices and hosts that share a training."""

from keras_seq.cluster.alone import Cluster
from keras_seq.cluster.starting import configure, initialize, start_cluster

__all__ = ["Cluster", "configure", "start_cluster", "initialize"]

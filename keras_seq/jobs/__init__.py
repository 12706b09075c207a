"""Fault-tolerant jobs in worker processes on this machine or on a Ray cluster."""

from keras_seq.jobs.corpus import WorkerExecutor
from keras_seq.jobs.failures import JobError
from keras_seq.jobs.local_workers import run_locally
from keras_seq.jobs.ray_workers import require_ray, run_on_ray
from keras_seq.jobs.translation import TranslationCounts, translate_files

__all__ = [
    "JobError",
    "WorkerExecutor",
    "TranslationCounts",
    "require_ray",
    "run_locally",
    "run_on_ray",
    "translate_files",
]

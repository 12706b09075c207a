"""A callback of Lightning that ends a training after minutes of processor time."""

from __future__ import annotations

import time

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback


class ProcessorLimit(Callback):
    """Stops after the epoch in which the process has used `minutes` of processor time.

    The callback `Timer` of Lightning measures wall time, which depends on other work.
    """

    def __init__(self, minutes: float) -> None:
        self.minutes = minutes

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if time.process_time() > 60 * self.minutes:
            trainer.should_stop = True

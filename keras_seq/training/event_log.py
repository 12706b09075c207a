"""Event files for TensorBoard: numbers, texts and images of a training."""

from __future__ import annotations

import importlib.util
import os
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any


class EventLog:
    """Writes event files for TensorBoard. Without TensorBoard, does nothing.

    The log uses the writer of TensorBoard, so it needs no TensorFlow and works on every backend.
    Each entry is flushed immediately, so it survives a kill.

    Args:
        directory: Directory of the event file, created with the first entry.
        initial_step: Step from which the training resumes. TensorBoard drops entries of later steps
            in earlier files of the directory.
        enabled: Whether to write anything.

    Attributes:
        installed: Whether TensorBoard is installed.
        writes: Whether the log is enabled and TensorBoard is installed.

    Raises:
        OSError: In all methods, if the file cannot be written.

    Example:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = EventLog(folder)
    ...     log.write(1, {"loss": 2.5})
    ...     log.write_samples(1, [("a dog", "ein Hund")])
    ...     log.close()
    """

    def __init__(
        self, directory: str | os.PathLike[str], initial_step: int = 0, enabled: bool = True
    ) -> None:
        self._directory = str(directory)
        self.installed = importlib.util.find_spec("tensorboard") is not None
        self.writes = enabled and self.installed
        self._initial_step = initial_step
        self._writer: Any = None

    def write(self, step: int, scalars: Mapping[str, float], group: str = "") -> None:
        """Adds numbers by name. `group` is a prefix of each name, such as "validation/"."""
        if not self.writes:
            return
        from tensorboard.compat.proto.summary_pb2 import Summary

        items = scalars.items()
        self._add(step, [Summary.Value(tag=group + key, simple_value=x) for key, x in items])

    def write_samples(self, step: int, samples: Sequence[Sequence[str]]) -> None:
        """Adds texts with the names `samples/1`, `samples/2` and so on.

        Samples are tuples (output), (source, output) or (source, reference, output).
        """
        if not self.writes or not samples:
            return
        from tensorboard.plugins.text.summary_v2 import text_pb

        values = []
        for number, sample in enumerate(samples, start=1):
            names = [*("source", "reference")[: len(sample) - 1], "model"]
            # Four spaces make a code block, so that the text is not interpreted as Markdown.
            texts = [text.replace("\n", " ") for text in sample]
            lines = [f"    {name:9} {text}" for name, text in zip(names, texts, strict=True)]
            values += text_pb(f"samples/{number}", "\n".join(lines)).value
        self._add(step, values)

    def write_pictures(self, step: int, name: str, pictures: Sequence[bytes]) -> None:
        """Adds grayscale PNG files as images, named like `attention/1` for `name` "attention"."""
        if not self.writes or not pictures:
            return
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = []
        for number, picture in enumerate(pictures, start=1):
            # The header after the signature of a PNG file contains its size.
            width, height = struct.unpack(">II", picture[16:24])
            image = Summary.Image(
                height=height, width=width, colorspace=1, encoded_image_string=picture
            )
            values.append(Summary.Value(tag=f"{name}/{number}", image=image))
        self._add(step, values)

    def close(self) -> None:
        """Closes the event file. Later entries are ignored."""
        if self._writer is not None:
            self._writer.close()
        self.writes = False

    def _add(self, step: int, values: Sequence[Any]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        try:
            now = time.time()
            if self._writer is None:
                self._writer = EventFileWriter(self._directory)
                start = SessionLog(status=SessionLog.START)
                first = Event(wall_time=now, step=self._initial_step + 1, session_log=start)
                self._writer.add_event(first)
            self._writer.add_event(Event(wall_time=now, step=step, summary=Summary(value=values)))
            self._writer.flush()
        except Exception as error:
            # With TensorFlow installed, its errors replace those of the system, such as
            # "FILE; No space left on device".
            reason = getattr(error, "strerror", None) or str(error).rpartition("; ")[-1]
            raise OSError(f"{self._directory}: not written: {reason.lower()}") from error

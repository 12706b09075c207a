"""Shows what the model makes of a few inputs while it learns."""

import sys

from keras_seq.callbacks.counting_callback import CountingCallback


class SampleTranslations(CountingCallback):
    """Translates the same few inputs every so many updates, and at the end.

    Args:
        translate: Function of a list of inputs that gives a list of outputs, such
            as a `keras_seq.Translator` made from the model that is trained.
        sources: List of inputs.
        every: Positive integer, updates between two looks.
        references: Optional list, shown beside the outputs.
        report: Optional function, called with the number of updates and the list of
            outputs in place of printing them.
        initial_step: Updates done before this `fit`.

    Raises:
        ValueError: If `every` is not a positive integer, or there are not as many
            references as sources.

    Example:

    >>> callback = SampleTranslations(lambda lines: [line[::-1] for line in lines],
    ...     sources=["abc"], every=500)
    """

    def __init__(self, translate, sources, every, references=None, report=None, initial_step=0):
        super().__init__(initial_step)
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"`every` must be a positive integer, received {every!r}.")
        if references is not None and len(references) != len(sources):
            raise ValueError(
                f"`references` must be as many as `sources`, received {len(references)} and "
                f"{len(sources)}."
            )
        self.translate = translate
        self.sources = list(sources)
        self.every = every
        self.references = references
        self.report = report or self._print
        self._shown = None

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self._due(self.every):
            self._show()

    def on_train_end(self, logs=None):
        if self.step != self._shown:
            self._show()

    def _show(self):
        # On JAX `fit` holds the weights itself; to ask for the model puts them back into it.
        _ = self.model
        self._shown = self.step
        self.report(self.step, list(self.translate(self.sources)))

    def _print(self, step, outputs):
        for i, (source, output) in enumerate(zip(self.sources, outputs, strict=True)):
            lines = [f"step {step:,}, line {i + 1}", f"  source    {source}"]
            if self.references is not None:
                lines.append(f"  reference {self.references[i]}")
            sys.stderr.write("\n".join([*lines, f"  model     {output}"]) + "\n")
        sys.stderr.flush()

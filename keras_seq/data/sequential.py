"""Batches of a whole corpus in a fixed order, for validation."""

from collections.abc import Iterator

from keras_seq.data.batch import Batch, make_batch
from keras_seq.data.corpus import TokenCorpus
from keras_seq.data.plan import Shapes, make_plan


def sequential_batches(
    corpus: TokenCorpus, *, batch_tokens: int, shapes: Shapes = "exact", max_shapes: int = 8
) -> Iterator[Batch]:
    """Yields batches that contain each pair exactly once, shorter pairs first.

    Arguments and batches are as in `BatchStream`. Every call yields the same batches. Raises
    ValueError if the corpus is empty or an argument is out of range.
    """
    plan = make_plan(
        corpus, batch_tokens=batch_tokens, bucket_width=1, shapes=shapes, max_shapes=max_shapes
    )
    pairs = plan.in_order()
    return (
        make_batch(corpus, pairs[start:end], *shape)
        for start, end, shape in zip(
            plan.cuts[:-1].tolist(), plan.cuts[1:].tolist(), plan.shape.tolist(), strict=True
        )
    )

"""What a task learns from, which models do it, and which settings mean nothing to it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from keras_seq.settings.errors import choices, show
from keras_seq.settings.monitors import TEXT_MONITORS
from keras_seq.settings.search import SearchSettings
from keras_seq.text import LABELLED, PAIR, TAGGED, Roles, parse_columns


class Task(NamedTuple):
    """One thing that a run can learn.

    Attributes:
        families: The families of models that do it, the one by default first.
        data: Settings of the section `data` that are this task's alone, or shared with few.
        without: Settings that have no meaning with it, and why.
        usage: The command that uses a run of it, with `{}` for the run.
        has_labels: Whether targets are labels in place of text.
        autoencoding: Whether a line of `data.text` is its own source.
        training: Settings of the section `training` that are this task's alone.
        roles: The words for the two columns of a file in `data.columns`.
        monitors: Values of `training.monitor` that a validation of it computes.
    """

    families: tuple[str, ...]
    data: tuple[str, ...]
    without: Mapping[str, str]
    usage: str
    has_labels: bool = False
    autoencoding: bool = False
    training: tuple[str, ...] = ()
    roles: Roles | None = None
    monitors: tuple[str, ...] = ("loss", "perplexity", "accuracy")

    @property
    def command(self) -> str:
        """The name of the command that uses a run."""
        return self.usage.split()[0]


_SOURCELESS = {
    key: "there is no source"
    for key in (
        "tokenizer.joint",
        "training.source_word_dropout",
        "training.source_embeddings",
        "training.guided_alignment",
        "data.alignments",
        "search.coverage_penalty",
    )
} | {"score.tokenize": "no text is scored"}
_WRITES_NO_TEXT = {
    key: "no text is written"
    for key in (
        "tokenizer.joint",
        "training.word_dropout",
        "training.subword_alpha",
        "training.scheduled_sampling",
        "training.guided_alignment",
        "training.target_embeddings",
        # Labels have no pieces that the new ones could be made of.
        "training.from_run_vocabulary",
        "training.validation_beam_size",
        "data.alignments",
        "score.tokenize",
        *(f"search.{key}" for key in SearchSettings.model_fields if key != "batch_size"),
    )
}
_ITS_OWN_SOURCE = {
    "tokenizer.joint": "source and target are one text",
    "data.max_source_length": "source and target are one text: data.max_target_length is for both",
    "data.alignments": "source and target are one text",
    "training.guided_alignment": "the model has no attention",
    "training.scheduled_sampling": "what is drawn there is the code",
    "training.source_embeddings": "source and target have one table: training.target_embeddings",
    "training.validation_beam_size": "validation decodes as search says",
    "search.coverage_penalty": "the model has no attention",
    "score.tokenize": "no text is scored",
}
_PAIRS = (
    "columns",
    "concatenation",
    "source",
    "target",
    "pairs",
    "valid_source",
    "valid_target",
    "valid_pairs",
)
_LINES = ("text", "valid_text")
_LABELLED = ("columns", "labelled", "valid_labelled")

TASKS: Mapping[str, Task] = MappingProxyType(
    {
        "translate": Task(
            ("transformer", "rnn", "transformer-hub"),
            _PAIRS,
            {},
            "translate {} < input > output",
            roles=PAIR,
            monitors=(*TEXT_MONITORS, "loss", "perplexity", "accuracy"),
        ),
        "language-model": Task(
            ("lm-transformer", "lm-rnn"), (*_LINES, "packed"), _SOURCELESS, "generate {} --n-best 5"
        ),
        "classify": Task(
            ("classifier-rnn", "classifier-bag", "classifier-transformer", "classifier-hub"),
            (*_LABELLED, "class_weights"),
            _WRITES_NO_TEXT,
            "classify {} < input > output",
            has_labels=True,
            roles=LABELLED,
            monitors=("loss", "accuracy", "macro_f1"),
        ),
        "tag": Task(
            ("tagger-rnn", "tagger-transformer"),
            _LABELLED,
            _WRITES_NO_TEXT,
            "tag {} < input > output",
            has_labels=True,
            roles=TAGGED,
            monitors=("loss", "accuracy", "macro_f1", "entity_f1"),
        ),
        "vae": Task(
            ("vae-rnn",),
            _LINES,
            _ITS_OWN_SOURCE,
            "generate {} --count 5",
            autoencoding=True,
            training=("kl_weight", "kl_annealing", "kl_annealing_steps", "kl_cycles", "free_bits"),
            monitors=("perplexity", "elbo", "reconstruction"),
        ),
    }
)


def refuse_of_other_tasks(name: str, settings: Any) -> None:
    """ValueError for a setting that is for other tasks, or has no meaning with this one.

    The columns of a file are named in the words of the task.

    Args:
        name: The task.
        settings: The `Settings`.
    """
    task = TASKS[name]
    for section in ("data", "training"):
        fields = getattr(settings, section)
        owned = {other: getattr(known, section) for other, known in TASKS.items()}
        for key in dict.fromkeys(key for keys in owned.values() for key in keys):
            value = getattr(fields, key)
            if key not in owned[name] and value != type(fields).model_fields[key].default:
                others = [other for other, keys in owned.items() if key in keys]
                raise ValueError(
                    f"{section}.{key}: received {value!r}, which is for task "
                    + " or ".join(map(repr, others))
                )
    if task.roles is not None and settings.data.columns is not None:
        _check_columns(settings.data, task.roles)
    if (monitor := settings.training.monitor) not in ("auto", *task.monitors):
        raise ValueError(
            f"training.monitor: received {monitor!r}, expected "
            f"{choices(('auto', *task.monitors))} with task {name!r}"
        )
    for dotted, reason in task.without.items():
        section, key = dotted.split(".")
        fields = getattr(settings, section)
        if getattr(fields, key) != type(fields).model_fields[key].default:
            raise ValueError(f"{dotted}: {reason} with task {name!r}")


def _check_columns(data: Any, roles: Roles) -> None:
    parse_columns(data.columns, roles)
    tables = (data.pairs, data.labelled, data.valid_pairs, data.valid_labelled, data.prepared)
    if tables == (None,) * len(tables):
        name = "pairs" if roles == PAIR else "labelled"
        raise ValueError(
            f"data.columns: received {show(data.columns)} without data.{name}, expected a file "
            "that has these columns"
        )

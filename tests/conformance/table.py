"""One row for each public layer and model; every law runs over every row.

A new public layer needs a row here and a golden list of its parameters:
`PYTHONPATH=tests python -m conformance.golden`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import keras
import pytest
from conformance import (
    rows_attention,
    rows_backbones,
    rows_cells,
    rows_conditioned_generator,
    rows_latent,
    rows_multi_head,
    rows_parts,
    rows_recognition,
    rows_reversed_sequence,
    rows_sampling,
    rows_speech,
    rows_text,
    steps,
)
from conformance.harness import Row

from keras_seq import layers, models

TRANSFORMER = {
    "source_vocabulary_size": 20,
    "target_vocabulary_size": 20,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "units": 8,
    "feedforward_units": 16,
    "num_heads": 2,
}
LANGUAGE_MODEL = {
    "vocabulary_size": 20,
    "num_layers": 2,
    "units": 8,
    "feedforward_units": 16,
    "num_heads": 2,
}
IDS = {"source": "BS ids", "target": "BT ids"}

RECURRENT = {
    "source_vocabulary_size": 20,
    "target_vocabulary_size": 20,
    "embedding_units": 8,
    "encoder_units": 4,
    "decoder_units": 8,
    "attention_units": 8,
}


def ensemble(name: str | None = None, **options: Any) -> models.EnsembleSeq2Seq:
    def member(name: str) -> models.RecurrentSeq2Seq:
        return models.RecurrentSeq2Seq(**RECURRENT, **options, name=name)

    return models.EnsembleSeq2Seq.of(member, 2)


def uncached(name: str | None = None, **options: Any) -> models.UncachedSeq2Seq:
    return models.UncachedSeq2Seq(models.RecurrentSeq2Seq(**RECURRENT, **options), name=name)


def attention_cell(query: str = "current", input_feeding: bool = True) -> layers.AttentionCell:
    return layers.AttentionCell(
        keras.layers.GRUCell(8),
        layers.BahdanauAttention(8),
        query=query,
        input_feeding=input_feeding,
    )


def luong_cell(input_feeding: bool) -> layers.AttentionCell:
    cells = keras.layers.StackedRNNCells([keras.layers.LSTMCell(6), keras.layers.LSTMCell(8)])
    return layers.AttentionCell(cells, layers.LuongAttention(), input_feeding=input_feeding)


def one_step(layer: layers.AttentionCell, arrays: dict[str, Any]) -> Any:
    states = {"cell": [arrays["hidden"]], "attentional_state": arrays["fed"]}
    read = {name: array for name, array in arrays.items() if name not in ("hidden", "fed")}
    return layer(states=states, **read)


def whole_target(layer: layers.AttentionDecoder, arrays: dict[str, Any]) -> Any:
    outputs, _, weights = layer(**arrays, return_weights=True)
    return outputs, weights


ROWS = [
    Row(
        "AttentionCell",
        make=attention_cell,
        inputs={"inputs": "BD", "hidden": "BU", "fed": "BU", "value": "BSE", "summary": "BF"},
        masks={"value_mask": "S"},
        outputs=["BU", "BU", "BU", "BS"],
        call=one_step,
        step=partial(steps.cell_with_beam, one_step),
    ),
    *(
        Row(
            f"AttentionDecoder-{name}",
            make=lambda cell=cell: layers.AttentionDecoder(cell()),
            inputs={"inputs": "BTD", "value": "BSE", "summary": "BF"},
            masks={"value_mask": "S"},
            outputs=["BTU", "BTS"],
            call=whole_target,
            step=steps.attention_decoder,
        )
        for name, cell in (
            ("fed", attention_cell),
            ("previous", partial(attention_cell, query="previous")),
            ("previous-unfed", partial(attention_cell, query="previous", input_feeding=False)),
            ("stacked", partial(luong_cell, input_feeding=True)),
            ("stacked-unfed", partial(luong_cell, input_feeding=False)),
        )
    ),
    *(
        Row(
            f"BahdanauAttention-{name}",
            make=partial(layers.BahdanauAttention, units=8, **variant),
            inputs={"query": "BTD", "value": "BSE"},
            masks={"query_mask": "T", "value_mask": "S"},
            outputs=["BTE", "BTS"],
            step=steps.attention,
        )
        for name, variant in (("plain", {}), ("normalized", {"normalize": True}))
    ),
    Row(
        "FeedForward",
        make=partial(layers.FeedForward, units=16),
        inputs={"inputs": "BTD"},
        outputs=["BTD"],
    ),
    *(
        Row(
            f"LuongAttention-{score}",
            make=partial(layers.LuongAttention, score, units=units),
            inputs={"query": "BTD", "value": f"BS{features}"},
            masks={"query_mask": "T", "value_mask": "S"},
            outputs=[f"BT{features}", "BTS"],
            step=steps.attention,
        )
        for score, units, features in (
            ("dot", None, "D"),
            ("scaled", None, "D"),
            ("general", None, "E"),
            ("concat", 8, "E"),
        )
    ),
    Row(
        "MultiHeadCrossAttention",
        make=partial(layers.MultiHeadCrossAttention, num_heads=2),
        inputs={"query": "BTD", "value": "BSE"},
        masks={"value_mask": "S"},
        outputs=["BTD", "BHTS"],
        call=lambda layer, arrays: layer(**arrays, return_weights=True),
        float32_outputs=[1],
        step=steps.cross_attention,
    ),
    Row(
        "MultiHeadSelfAttention",
        make=partial(layers.MultiHeadSelfAttention, num_heads=2),
        inputs={"inputs": "BTD"},
        masks={"mask": "T"},
        outputs=["BTD", "BHTT"],
        call=lambda layer, arrays: layer(**arrays, return_weights=True),
        float32_outputs=[1],
    ),
    Row(
        "MultiHeadSelfAttention-causal",
        make=partial(layers.MultiHeadSelfAttention, num_heads=2, causal=True),
        inputs={"inputs": "BTD"},
        masks={"mask": "T"},
        outputs=["BTD"],
        step=steps.self_attention,
    ),
    Row(
        "SinusoidalPosition",
        make=layers.SinusoidalPosition,
        inputs={"inputs": "BTD"},
        outputs=["BTD"],
        step=steps.position,
    ),
    Row(
        "TokenEmbedding",
        make=partial(layers.TokenEmbedding, vocabulary_size=20, units=8),
        inputs={"inputs": "BT ids"},
        outputs=["BTU"],
    ),
    Row(
        "TokenEmbedding-reverse",
        make=partial(layers.TokenEmbedding, vocabulary_size=20, units=8),
        inputs={"inputs": "BTU"},
        outputs=["BTV"],
        call=lambda layer, arrays: layer(**arrays, reverse=True),
        float32_outputs=[0],
    ),
    *(
        Row(
            f"TransformerEncoderBlock-{norm}",
            make=partial(
                layers.TransformerEncoderBlock, num_heads=2, feedforward_units=16, norm=norm
            ),
            inputs={"inputs": "BTD"},
            masks={"mask": "T"},
            outputs=["BTD"],
        )
        for norm in ("pre", "post")
    ),
    Row(
        "TransformerEncoderBlock-causal",
        make=partial(
            layers.TransformerEncoderBlock, num_heads=2, feedforward_units=16, causal=True
        ),
        inputs={"inputs": "BTD"},
        masks={"mask": "T"},
        outputs=["BTD"],
        step=steps.causal_block,
    ),
    *(
        Row(
            f"TransformerDecoderBlock-{norm}",
            make=partial(
                layers.TransformerDecoderBlock, num_heads=2, feedforward_units=16, norm=norm
            ),
            inputs={"inputs": "BTD", "memory": "BSE"},
            masks={"inputs_mask": "T", "memory_mask": "S"},
            outputs=["BTD"],
            step=steps.decoder_block,
        )
        for norm in ("pre", "post")
    ),
    *(
        Row(
            f"Transformer-{name}",
            make=partial(models.Transformer, **(TRANSFORMER | variant)),
            inputs=IDS,
            outputs=["BTV"],
            call=lambda model, arrays: model(arrays),
            float32_outputs=[0],
            step=steps.model,
        )
        for name, variant in (
            ("pre", {"share_embeddings": True}),
            (
                "post",
                {
                    "norm": "post",
                    "activation": "gelu",
                    "position": "relative",
                    "feature_encoder": "transformer",
                    "num_features": 5,
                },
            ),
            (
                "rotary",
                {
                    "position": "rotary",
                    "cross_position": "rotary",
                    "activation": "swiglu",
                    "normalization": "rms",
                },
            ),
            ("copy", {"copy": True}),
            (
                "learned",
                {
                    "position": "learned",
                    "num_decoder_layers": 1,
                    "feature_encoder": "linear",
                    "num_features": 5,
                },
            ),
            (
                "biases",
                {
                    "position": "linear_biases",
                    "num_encoder_layers": 1,
                    "feature_encoder": "recurrent",
                    "num_features": 5,
                },
            ),
        )
    ),
    Row(
        "EnsembleSeq2Seq",
        make=ensemble,
        inputs=IDS,
        outputs=["BTV"],
        call=lambda model, arrays: model(arrays),
        float32_outputs=[0],
        step=steps.model,
    ),
    Row(
        "UncachedSeq2Seq",
        make=uncached,
        inputs=IDS,
        outputs=["BTV"],
        call=lambda model, arrays: model(arrays),
        float32_outputs=[0],
        step=steps.model,
    ),
    *(
        Row(
            f"RecurrentSeq2Seq-{name}",
            make=partial(models.RecurrentSeq2Seq, **(RECURRENT | variant)),
            inputs=IDS,
            outputs=["BTV"],
            call=lambda model, arrays: model(arrays),
            float32_outputs=[0],
            step=steps.model,
        )
        for name, variant in (
            ("gru", {"share_embeddings": True}),
            (
                "lstm",
                {
                    "cell": "lstm",
                    "num_encoder_layers": 2,
                    "num_decoder_layers": 2,
                    "attention": "luong",
                    "input_feeding": False,
                    "context": "init",
                    "bridge": "copy",
                    "tie_output": True,
                },
            ),
            ("convolutional", {"encoder": "convolutional", "num_encoder_layers": 2}),
            ("copy", {"copy": True, "source_vocabulary_size": 24, "num_decoder_layers": 2}),
            (
                "hard",
                {
                    "attention": "hard",
                    "attention_window": 2,
                    "num_decoder_layers": 2,
                    "feature_encoder": "linear",
                    "num_features": 5,
                },
            ),
            ("location", {"attention": "location"}),
            ("luong-monotonic", {"attention": "luong_monotonic", "cell": "lstm"}),
            (
                "monotonic",
                {
                    "attention": "bahdanau_monotonic",
                    "feature_encoder": "recurrent",
                    "num_features": 5,
                },
            ),
        )
    ),
    *(
        Row(
            f"TransformerLanguageModel-{norm}",
            make=partial(
                models.TransformerLanguageModel, **LANGUAGE_MODEL, norm=norm, position=position
            ),
            inputs=IDS,
            outputs=["BTV"],
            call=lambda model, arrays: model(arrays),
            float32_outputs=[0],
            step=steps.model,
        )
        for norm, position in (("pre", "learned"), ("post", "linear_biases"))
    ),
    *(
        Row(
            f"RecurrentLanguageModel-{name}",
            make=partial(models.RecurrentLanguageModel, 20, embedding_units=8, **variant),
            inputs=IDS,
            outputs=["BTV"],
            call=lambda model, arrays: model(arrays),
            float32_outputs=[0],
            step=steps.model,
        )
        for name, variant in (
            ("gru", {"cell": "gru", "units": 6}),
            ("lstm", {"num_layers": 2, "units": 8, "tie_output": False}),
        )
    ),
    *rows_attention.ROWS,
    *rows_cells.ROWS,
    *rows_conditioned_generator.ROWS,
    *rows_latent.ROWS,
    *rows_multi_head.ROWS,
    *rows_parts.ROWS,
    *rows_recognition.ROWS,
    *rows_reversed_sequence.ROWS,
    *rows_sampling.ROWS,
    *rows_speech.ROWS,
    *rows_text.ROWS,
    *rows_backbones.ROWS,
]

# Public functions and samplers, which have separate tests.
NOT_LAYERS = {
    "CategoricalSampler",
    "Ensemble",
    "GreedySampler",
    "ScheduledEmbeddingSampler",
    "ScheduledOutputSampler",
    "TrainingSampler",
    "beam_cache_mask",
    "bidirectional",
    "monotonic_attention",
    "update_ancestors",
    "stacked",
}

FIRST = {row.public_name: row.name for row in reversed(ROWS)}


def marked(
    row: Row,
    *values: Any,
    now: bool = True,
    jax: bool | Literal["weekly"] = False,
    torch: bool = False,
) -> Any:
    """Marks rows: the first row of each public name runs by default, the others every week.

    Without `now`, all rows run every week.

    On JAX most of a law's time is compilation. That the outputs of every row agree with those of
    TensorFlow is a law itself (`test_law_backends_agree.py`), so laws about outputs hold on JAX
    too. With `jax`, for gradients, half precision and steps, the first rows run there as well; with
    "weekly", only every week. With `torch`, all rows run on torch.
    """
    marks = []
    is_first = row.name in FIRST.values()
    if not is_first or not now:
        marks = [pytest.mark.slow, pytest.mark.weekly]
    if jax and is_first:
        marks.append(pytest.mark.jax)
        if jax == "weekly" and keras.backend.backend() == "jax":
            marks.append(pytest.mark.weekly)
    if torch:
        marks.append(pytest.mark.torch)
    name = "-".join([*map(str, values[:-1]), row.name])
    return pytest.param(*(values or [row]), id=name, marks=marks)


def rows_where(condition: Callable[[Row], Any], *, jax: bool = False, torch: bool = False) -> Any:
    """Returns `parametrize` for a law that holds for some rows."""
    rows = [marked(row, jax=jax, torch=torch) for row in ROWS if condition(row)]
    return pytest.mark.parametrize("row", rows)


every_row = rows_where(lambda row: True)
# For what depends on the class alone, or holds for a further row if its other laws hold.
first_rows = rows_where(lambda row: row.name in FIRST.values())
every_row_on_torch = rows_where(lambda row: True, torch=True)
every_row_on_all_backends = rows_where(lambda row: True, jax=True, torch=True)

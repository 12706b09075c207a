"""A run's weights as a CTranslate2 model: from numpy arrays, so that Keras is not needed.

Each number of the one model has its place in the other; `layout` says which. CTranslate2
keeps kernels as outputs by inputs; projections that share an input are one matrix in both.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from keras_seq.run import Run
from keras_seq.settings import TransformerSettings
from keras_seq.text import InputError, Tokenizer
from keras_seq.text.stored_model import BOS_ID, EOS_ID, UNK_ID, load

_LAYER_NORM_EPSILON = 1e-5
_MAX_WAVELENGTH = 10000.0
# Of CTranslate2's attention linear layers: the first projects the queries, in self-attention
# with keys and values; where memory is attended to, the second projects that.
_SELF_ATTENTION = (("qkv_", 3), ("output_", 1))
_CROSS_ATTENTION = (("query_", 1), ("key_value_", 2), ("output_", 1))


class Slot(NamedTuple):
    """Where a weight goes: CTranslate2's variable, our weight and its shape."""

    variable: str
    weight: str
    shape: tuple[int, ...]


def require_ctranslate2() -> Any:
    """The module `ctranslate2`, or InputError with what to install."""
    try:
        import ctranslate2
        import ctranslate2.specs
    except ImportError as error:
        raise InputError(
            "CTranslate2 is not installed: pip install 'keras-seq[ctranslate2]'"
            + ("" if isinstance(error, ModuleNotFoundError) else f" ({error})")
        ) from None
    return ctranslate2


def require_arithmetic(quantize: str) -> None:
    """InputError where CTranslate2 does not compute so on this processor."""
    supported = require_ctranslate2().get_supported_compute_types("cpu")
    if quantize not in supported:
        raise InputError(
            f"quantize: received {quantize!r}, expected what CTranslate2 has on this processor: "
            + ", ".join(sorted(supported))
        )


def require_transformer(run: Run) -> TransformerSettings:
    """The settings of a Transformer; InputError where the run has another model."""
    model = run.settings.model
    if not isinstance(model, TransformerSettings):
        raise InputError(
            f"{run.path}: model.family {model.family!r}, and CTranslate2 runs only Transformers of "
            "our own encoder: use a SavedModel or --engine tensorflow"
        )
    return model


def layout(
    model: TransformerSettings, source_size: int, target_size: int, joint: bool
) -> Iterator[Slot]:
    """Every weight of a Transformer of `keras_seq.models` and its place in CTranslate2.

    Args:
        model: Settings of the model.
        source_size: Number of source tokens.
        target_size: Number of target tokens.
        joint: Whether both sides use one table.
    """
    units, inner = model.units, model.feedforward_units

    def dense(variable: str, weight: str, inputs: int, outputs: int) -> Iterator[Slot]:
        yield Slot(f"{variable}/weight", f"{weight}kernel", (inputs, outputs))
        yield Slot(f"{variable}/bias", f"{weight}bias", (outputs,))

    def norm(variable: str, weight: str) -> Iterator[Slot]:
        yield Slot(f"{variable}/gamma", f"{weight}/gamma", (units,))
        yield Slot(f"{variable}/beta", f"{weight}/beta", (units,))

    def attention(variable: str, weight: str, parts: tuple[tuple[str, int], ...]) -> Iterator[Slot]:
        for i, (name, count) in enumerate(parts):
            yield from dense(f"{variable}/linear_{i}", f"{weight}/{name}", units, count * units)
        yield from norm(f"{variable}/layer_norm", f"{weight}_residual/norm")

    for side, size, tables, depth, attentions in (
        (
            "encoder",
            source_size,
            ("embeddings_0",),
            model.num_encoder_layers,
            (("self_attention", "attention", _SELF_ATTENTION),),
        ),
        (
            "decoder",
            target_size,
            ("embeddings", "projection"),
            model.num_decoder_layers,
            (
                ("self_attention", "self_attention", _SELF_ATTENTION),
                ("attention", "cross_attention", _CROSS_ATTENTION),
            ),
        ),
    ):
        name = "embedding" if joint else f"{'source' if side == 'encoder' else 'target'}_embedding"
        for table in tables:
            yield Slot(f"{side}/{table}/weight", f"{name}/embeddings", (size, units))
        for i in range(depth):
            layer, block = f"{side}/layer_{i}", f"{side}_block_{i}"
            for variable, weight, parts in attentions:
                yield from attention(f"{layer}/{variable}", f"{block}/{weight}", parts)
            feed_forward = f"{block}/feed_forward"
            yield from dense(f"{layer}/ffn/linear_0", f"{feed_forward}/hidden/", units, inner)
            yield from dense(f"{layer}/ffn/linear_1", f"{feed_forward}/projection/", inner, units)
            yield from norm(f"{layer}/ffn/layer_norm", f"{feed_forward}_residual/norm")
        if model.norm == "pre":
            yield from norm(f"{side}/layer_norm", f"{side}_norm")


def make_spec(run: Run, *, which: str | int = "best", positions: int) -> Any:
    """Reads a run's weights into a specification of CTranslate2.

    Args:
        run: An opened run.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
        positions: Longest source or target that the model is to read, in tokens.

    Returns:
        A `ctranslate2.specs.TransformerSpec` in float32, checked to be whole.

    Raises:
        InputError: CTranslate2 is not installed, the model is no Transformer, or
            there is no whole checkpoint.
    """
    specs = require_ctranslate2().specs
    model = require_transformer(run)
    run.require_task("translate")
    run.require_weights(which)
    source, target = run.source_tokenizer, run.target_tokenizer
    slots = list(
        layout(model, source.vocabulary_size, target.vocabulary_size, run.settings.tokenizer.joint)
    )
    weights = run.load_weights({slot.weight: (slot.shape, "float32") for slot in slots}, which)
    spec = specs.TransformerSpec.from_config(
        (model.num_encoder_layers, model.num_decoder_layers),
        model.num_heads,
        pre_norm=model.norm == "pre",
        activation=specs.common_spec.Activation[model.activation.upper()],
    )
    _fill(spec, slots, weights, specs.model_spec.index_spec)
    table = sinusoids(positions, model.units)
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = True
        side.position_encodings.encodings = table
    source_pieces, pieces = vocabularies(source, target)
    spec.register_source_vocabulary(source_pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.unk_token = pieces[UNK_ID]
    spec.config.bos_token = spec.config.decoder_start_token = pieces[BOS_ID]
    spec.config.eos_token = pieces[EOS_ID]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = _LAYER_NORM_EPSILON
    spec.validate()
    return spec


def open_spec(spec: Any, compute_type: str) -> Any:
    """Makes a `ctranslate2.Translator` of a specification, which is used up.

    Args:
        spec: What `make_spec` gave.
        compute_type: Arithmetic, such as `"float32"` or `"int8"`.
    """
    spec.optimize(quantization="float32")
    # CTranslate2 reads a model from files and keeps none of them open.
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        return open_directory(folder, compute_type)


def open_directory(directory: str, compute_type: str = "default") -> Any:
    """Makes a `ctranslate2.Translator` of a model directory, with a worker for each core.

    One core for a batch is the fastest: small models lose more to their
    threads waiting for one another than they gain.
    """
    return require_ctranslate2().Translator(
        directory, compute_type=compute_type, inter_threads=_cores(), intra_threads=1
    )


def vocabularies(source: Tokenizer, target: Tokenizer) -> tuple[list[str], list[str]]:
    """The pieces of both tokenizers by id: the names that CTranslate2 has for ids."""
    pieces = _pieces(source)
    return pieces, pieces if target is source else _pieces(target)


def sinusoids(positions: int, units: int) -> np.ndarray:
    """The table of `keras_seq.layers.SinusoidalPosition`, float32 `(positions, units)`.

    CTranslate2's own table has other wavelengths and starts at 1.
    """
    half = (units + 1) // 2
    exponents = np.arange(half, dtype=np.float32) * np.float32(-2.0 * math.log(_MAX_WAVELENGTH))
    frequencies = np.exp(exponents / np.float32(units))
    angles = np.arange(positions, dtype=np.float32)[:, None] * frequencies[None]
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return np.ascontiguousarray(pairs.reshape(positions, 2 * half)[:, :units])


def _fill(spec: Any, slots: list[Slot], weights: Mapping[str, np.ndarray], index: Any) -> None:
    for slot in slots:
        array = weights[slot.weight]
        scope, _, attribute = slot.variable.rpartition("/")
        # Tables are stored by row in both.
        transposed = slot.weight.endswith("kernel")
        value = np.ascontiguousarray(array.T) if transposed else array
        setattr(index(spec, scope), attribute, value)


def _pieces(tokenizer: Tokenizer) -> list[str]:
    processor = load(tokenizer.to_bytes())
    return [processor.id_to_piece(i) for i in range(processor.vocab_size())]


def _cores() -> int:
    # What this process may use can be less than what the machine has.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

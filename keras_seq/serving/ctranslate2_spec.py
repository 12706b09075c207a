"""Converts the weights of a run to a CTranslate2 model, without Keras."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from keras_seq.operating_system import usable_cores
from keras_seq.run import Run
from keras_seq.settings import TransformerSettings
from keras_seq.text import BOS_ID, EOS_ID, UNK_ID, InputError, Tokenizer
from keras_seq.text.stored_model import load

_LAYER_NORM_EPSILON = 1e-5
_MAX_WAVELENGTH = 10000.0
# Linear layers of an attention layer in CTranslate2: prefix of the weight in the run, and number of
# fused projections. In self-attention, the first layer computes queries, keys and values. In
# cross-attention, the first layer computes the queries, and the second layer the keys and values.
_SELF_ATTENTION = (("qkv_", 3), ("output_", 1))
_CROSS_ATTENTION = (("query_", 1), ("key_value_", 2), ("output_", 1))


class Slot(NamedTuple):
    """A CTranslate2 variable, with the name and shape of the corresponding weight of the run."""

    variable: str
    weight: str
    shape: tuple[int, ...]


def require_ctranslate2() -> Any:
    """Returns the module `ctranslate2`, or raises InputError if the package is not installed."""
    try:
        import ctranslate2
        import ctranslate2.specs
    except ImportError as error:
        raise InputError(
            "CTranslate2 is not installed: python -m pip install 'keras-seq[ctranslate2]'"
            + ("" if isinstance(error, ModuleNotFoundError) else f" ({error})")
        ) from None
    return ctranslate2


def require_arithmetic(quantize: str) -> None:
    """Raises InputError if CTranslate2 does not support the compute type on this processor."""
    supported = require_ctranslate2().get_supported_compute_types("cpu")
    if quantize not in supported:
        raise InputError(
            f"quantize: received {quantize!r}, expected a type that CTranslate2 supports on this "
            "processor: " + ", ".join(sorted(supported))
        )


# The settings of a Transformer that the layout of weights below describes.
_SUPPORTED = {
    "activation": ("relu", "gelu"),
    "copy": (False,),
    "normalization": ("layer",),
    "position": ("sinusoidal",),
    "cross_position": ("none",),
}


def require_transformer(run: Run) -> TransformerSettings:
    """Returns the model settings, or raises InputError if the run's model is not a Transformer."""
    model = run.settings.model
    if not isinstance(model, TransformerSettings):
        raise InputError(
            f"{run.path}: model.family: received {model.family!r}; CTranslate2 supports only "
            "'transformer': use a SavedModel or --engine tensorflow"
        )
    if run.settings.data.has_features:
        raise InputError(
            f"{run.path}: CTranslate2 reads no features of pairs: use a SavedModel or --engine "
            "tensorflow"
        )
    for name, supported in _SUPPORTED.items():
        if (value := getattr(model, name)) not in supported:
            raise InputError(
                f"{run.path}: model.{name}: received {value!r}; an export to CTranslate2 supports "
                f"only {' and '.join(map(repr, supported))}"
            )
    return model


def layout(
    model: TransformerSettings, source_size: int, target_size: int, joint: bool
) -> Iterator[Slot]:
    """Yields a slot for each variable of a Transformer in CTranslate2.

    `joint` means that source and target share one embedding table.
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

    for side, prefix, size, depth in (
        ("encoder", "source_", source_size, model.num_encoder_layers),
        ("decoder", "target_", target_size, model.num_decoder_layers),
    ):
        tables = ["embeddings_0"] if side == "encoder" else ["embeddings", "projection"]
        name = "embedding" if joint else f"{prefix}embedding"
        for table in tables:
            yield Slot(f"{side}/{table}/weight", f"{name}/embeddings", (size, units))
        for i in range(depth):
            layer, block = f"{side}/layer_{i}", f"{side}_block_{i}"
            weight = "attention" if side == "encoder" else "self_attention"
            yield from attention(f"{layer}/self_attention", f"{block}/{weight}", _SELF_ATTENTION)
            if side == "decoder":
                memory = f"{block}/cross_attention"
                yield from attention(f"{layer}/attention", memory, _CROSS_ATTENTION)
            feed_forward = f"{block}/feed_forward"
            yield from dense(f"{layer}/ffn/linear_0", f"{feed_forward}/hidden/", units, inner)
            yield from dense(f"{layer}/ffn/linear_1", f"{feed_forward}/projection/", inner, units)
            yield from norm(f"{layer}/ffn/layer_norm", f"{feed_forward}_residual/norm")
        if model.norm == "pre":
            yield from norm(f"{side}/layer_norm", f"{side}_norm")


def make_spec(run: Run, *, which: str | int = "best", positions: int) -> Any:
    """Reads a run's weights into a validated float32 `ctranslate2.specs.TransformerSpec`.

    `positions` is the maximum length of a source or target, in tokens.
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
    for slot in slots:
        array = weights[slot.weight]
        # CTranslate2 stores kernels transposed, but embedding tables in the same layout as Keras.
        if slot.weight.endswith("kernel"):
            array = np.ascontiguousarray(array.T)
        scope, _, attribute = slot.variable.rpartition("/")
        setattr(specs.model_spec.index_spec(spec, scope), attribute, array)
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
    """Creates a `ctranslate2.Translator` from a specification, and modifies the specification."""
    spec.optimize(quantization="float32")
    # CTranslate2 loads all files into memory, so the directory can be temporary.
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        return open_directory(folder, compute_type)


def open_directory(directory: str, compute_type: str = "default") -> Any:
    """Opens a model directory as a `ctranslate2.Translator` with one worker per core.

    One core per batch is fastest for small models, because several threads wait for one another.
    """
    return require_ctranslate2().Translator(
        directory, compute_type=compute_type, inter_threads=usable_cores(), intra_threads=1
    )


def vocabularies(source: Tokenizer, target: Tokenizer) -> tuple[list[str], list[str]]:
    """Returns the source and target pieces in id order. CTranslate2 identifies tokens by piece."""
    pieces = _pieces(source)
    return pieces, pieces if target is source else _pieces(target)


def sinusoids(positions: int, units: int) -> np.ndarray:
    """Returns the table of `keras_seq.layers.SinusoidalPosition`, float32 `(positions, units)`.

    CTranslate2's own table uses different wavelengths and starts at position 1.
    """
    half = (units + 1) // 2
    exponents = np.arange(half, dtype=np.float32) * np.float32(-2.0 * math.log(_MAX_WAVELENGTH))
    frequencies = np.exp(exponents / np.float32(units))
    angles = np.arange(positions, dtype=np.float32)[:, None] * frequencies[None]
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return np.ascontiguousarray(pairs.reshape(positions, 2 * half)[:, :units])


def _pieces(tokenizer: Tokenizer) -> list[str]:
    processor = load(tokenizer.to_bytes())
    return [processor.id_to_piece(i) for i in range(processor.vocab_size())]

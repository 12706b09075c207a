"""Base class of the models that search decodes with."""

import contextlib
from types import SimpleNamespace
from typing import Any

from keras_seq.layers.embedding.token_embedding import cached_output_kernels
from keras_seq.models.functional_model import FunctionalModel


class SearchableModel(FunctionalModel):
    """Model with an encoder and single decoder steps over its own weights. Abstract.

    A constructor calls `_set_parts` after `super().__init__`.
    """

    def _set_parts(self, encoder: Any, decoder: Any, **others: Any) -> None:
        """Sets the parts that search uses, and `others` as attributes of `self._parts`.

        `encoder` is a functional model from the source to the memory, a dict with `mask`. `decoder`
        has the methods `step(memory)`, which returns the functional model `decoder_step`,
        `initial_state` and `grow_state`.
        """
        # The namespace keeps Keras from tracking the weights twice.
        self._parts = SimpleNamespace(
            encoder=encoder, decoder=decoder, decoder_step=decoder.step(encoder.output), **others
        )

    @property
    def encoder(self) -> Any:
        """Functional model that encodes the source as the memory, a dict of tensors."""
        return self._parts.encoder

    @property
    def decoder_step(self) -> Any:
        """Functional model of one step of K hypotheses.

        Its input is a dict of `token` `(B, K)`, `position` `()`, `state` and `memory`; its output
        is a dict of `logits` `(B, K, V)` and the next `state`.
        """
        return self._parts.decoder_step

    def initial_state(self, memory: dict[str, Any], beam_size: int, length: Any) -> dict[str, Any]:
        """Returns the state before the first step.

        Args:
            memory: Output of `encoder`.
            beam_size: Integer K, or in an export a scalar tensor.
            length: Integer or scalar tensor, the number of steps that the state must hold.
                Recurrent states hold any number of steps and ignore it.

        Returns:
            Dict of `beam`, tensors `(B, K, ...)` that a search reorders with its hypotheses, and
            `shared`, tensors `(B, ...)` that it does not reorder.
        """
        return self._parts.decoder.initial_state(self.decoder_step, memory, beam_size, length)

    def grow_state(self, state: dict[str, Any], length: Any) -> dict[str, Any]:
        """Returns a state that holds `length` more steps.

        `state` is from `initial_state` or `decoder_step`, and `length` is an integer or scalar
        tensor. A KV cache drops the entries that no live hypothesis descends from. Recurrent states
        are returned unchanged.
        """
        return self._parts.decoder.grow_state(state, length)

    def cached_output_kernel(self) -> contextlib.AbstractContextManager[None]:
        """Context manager in which decoder steps share one transposed output kernel.

        Without it a model with tied embeddings transposes its embedding table at every step. It
        does nothing for other models.
        """
        return cached_output_kernels(getattr(self._parts.decoder, "tied_embeddings", ()))

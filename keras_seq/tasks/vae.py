"""The task `vae`: a variational autoencoder of lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.tasks.task import PlainEvaluation, Task
from keras_seq.tasks.translation import TranslationExporter, searched

if TYPE_CHECKING:
    from keras_seq.training.validator import Batches, Report

_MEANING = """\
`serving_default`, the signature used above: `text`, one string a row. For each row:

* `text`: the text that its latent code is decoded to; empty for a blank text.
* `score`: its log-probability, normalized by its length as the search settings say.
* `truncated`: true if the text was longer than {limit} tokens and was cut there, or if the
  decoded text reached its own limit ({max_length} tokens).

`decode`: `latent`, a latent code of {units} numbers a row, such as a sample from a normal
distribution of mean 0 and variance 1. For each row its `text` and `score`.

"""


class VariationalAutoencoder(Task):
    """Maps texts to latent codes and back; trained with the evidence lower bound (ELBO)."""

    name = "vae"
    families = ("vae-rnn",)
    usage = "generate {} --count 5"
    file = "text"
    data = ("text", "valid_text")
    training = ("kl_weight", "kl_annealing", "kl_annealing_steps", "kl_cycles", "free_bits")
    without = {
        "tokenizer.joint": "source and target are one text",
        "data.max_source_length": "data.max_target_length limits the text",
        "data.alignments": "source and target are one text",
        "training.guided_alignment": "the model has no attention",
        "training.scheduled_sampling": "the latent code is sampled instead of tokens",
        "training.r_drop": "two samples of the latent code do not agree",
        "training.source_embeddings": "training.target_embeddings initializes both sides",
        "training.validation_beam_size": "search.beam_size applies to validation",
        "search.coverage_penalty": "the model has no attention",
        "score.tokenize": "no text is scored",
    }
    autoencoding = True
    monitors = ("perplexity", "elbo", "reconstruction")

    def objective(self, settings: Settings) -> Any:
        from keras_seq.training.latent_objective import LatentObjective

        return LatentObjective(settings)

    def evaluation(self, run: Run, model: Any, train_model: Any, resumed: str | None) -> Any:
        return LatentEvaluation(run, model)

    def exporter(self, run: Run, settings: Settings) -> Any:
        return ReconstructionExporter(run, settings)


class LatentEvaluation(PlainEvaluation):
    """The ELBO of the validation text, and the information in its latent codes."""

    def __init__(self, run: Run, model: Any) -> None:
        from keras_seq.evaluation.resampling import spread
        from keras_seq.inference.autoencoder import Autoencoder
        from keras_seq.training.latent_evaluation import make_latent_evaluation

        super().__init__(run, "perplexity")
        settings = run.settings
        self._evaluate = make_latent_evaluation(model)
        self._units = int(model.posterior.output["mean"].shape[-1])
        longest = settings.data.max_target_length
        self._autoencoder = Autoencoder(model, run.target_tokenizer, settings.search, longest)
        texts, _ = run.valid_lines()
        self._sample_lines = spread(settings.training.sample_count, len(texts))
        self._texts = [texts[i] for i in self._sample_lines]

    def __call__(self, batches: Batches, *, pictures: bool) -> Report:
        from keras_seq.training.validator import Report, Sample

        values = self._evaluate(batches)
        decoded = self._autoencoder.reconstruct(self._texts) if self._texts else []
        sampled = self._autoencoder.sample() if self._texts else []
        lines = zip(self._sample_lines, self._texts, decoded, strict=True)
        return Report(
            values,
            f"reconstruction {values['reconstruction']:.3f} a token "
            f"(perplexity {values['reconstruction_perplexity']:.2f}), "
            f"KL {values['kl']:.2f} and bound {values['elbo']:.2f} a line "
            f"(perplexity at most {values['perplexity']:.2f}), "
            f"{values['active_units']:.0f} of {self._units} units active, "
            f"mutual information {values['mutual_information']:.2f}",
            [
                *(Sample(f"line {i + 1}", [("text", a), ("decoded", b)]) for i, a, b in lines),
                *(Sample("sample", [("", text)]) for text in sampled),
            ],
        )


class ReconstructionExporter(TranslationExporter):
    """Exporter of a model that reconstructs a text from its latent code; see `Exporter`."""

    outputs: tuple[str, ...] = ("text", "score", "truncated")
    verb = "writes"
    _options = tuple(
        name
        for name in TranslationExporter._options
        if name not in ("method", "temperature", "top_k", "top_p", "seed")
        and not name.endswith(("_ratio", "_extra"))
    )

    def __init__(self, run: Run, settings: Settings) -> None:
        # Length limits relative to the source do not apply to a latent code.
        search = settings.search
        longest = {"max_length_ratio": 0.0, "max_length_extra": search.max_length}
        search = search.model_copy(update={"min_length_ratio": 0.0, **longest})
        super().__init__(run, settings.model_copy(update={"search": search}))
        self.limit = settings.data.max_target_length

    def expected(self, model: Any, texts: Sequence[str]) -> list[str]:
        from keras_seq.inference.autoencoder import Autoencoder

        tokenizer, search = self._run.target_tokenizer, self._settings.search
        return Autoencoder(model, tokenizer, search, self.limit).reconstruct(texts)

    def module(self, model: Any) -> Any:
        from keras_seq.serving.search_signatures import latent_signature, translation_signatures
        from keras_seq.serving.signature_module import SignatureModule

        tokenizer, search = self._run.target_tokenizer, self._settings.search
        functions = translation_signatures(
            model, tokenizer, tokenizer, search, self.limit, self._characters, output="text"
        )
        # An ensemble lacks `from_latent`, because each member has its own latent code.
        if hasattr(model, "from_latent"):
            functions["decode"] = latent_signature(model, tokenizer, search)
        return SignatureModule(model, functions)

    def describe(self) -> str:
        search = self._settings.search
        meaning = _MEANING.format(
            limit=self.limit,
            max_length=search.max_length,
            units=self._settings.to_dict()["model"]["latent_units"],
        )
        return meaning + searched(search)


TASK = VariationalAutoencoder()

"""JoeyNMT settings for the model shapes of the comparison."""


def transformer(dropout: float) -> dict:
    """The shape of `transformer-small`."""
    side = {
        "type": "transformer",
        "num_layers": 3,
        "num_heads": 4,
        "embeddings": {"embedding_dim": 256, "scale": True},
        "hidden_size": 256,
        "ff_size": 1024,
        "layer_norm": "pre",
        "dropout": dropout,
    }
    return {"encoder": side, "decoder": side, "tied_embeddings": True, "tied_softmax": True}


def rnn(dropout: float) -> dict:
    """Bidirectional LSTM encoder; LSTM decoder with Bahdanau attention and input feeding."""
    side = {
        "type": "recurrent",
        "rnn_type": "lstm",
        "num_layers": 1,
        "embeddings": {"embedding_dim": 256, "dropout": dropout},
        "dropout": dropout,
    }
    encoder = {**side, "hidden_size": 256, "bidirectional": True}
    decoder = {
        **side,
        "hidden_size": 512,
        "hidden_dropout": dropout,
        "attention": "bahdanau",
        "input_feeding": True,
        "init_hidden": "bridge",
    }
    return {"encoder": encoder, "decoder": decoder, "tied_embeddings": True, "tied_softmax": False}

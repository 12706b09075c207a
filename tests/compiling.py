"""How JAX compiles where a test asks what is computed, not how fast: most of its time is that.

Other tests leave out these variables, so that what users run is compiled in full somewhere:
tests/faults, tests/cli/test_export.py, tests/test_batch_search.py.
"""

import os

# No passes that make a program faster, and none that takes fusions through another compiler.
_FLAGS = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"


def quickly() -> dict[str, str]:
    """Variables of the environment."""
    return {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {_FLAGS}"}


def quickly_and_once(folder: object) -> dict[str, str]:
    """The same, and a folder for what was compiled, for others that need the same.

    None that is killed may write there: a file is not written in one piece.
    """
    return quickly() | {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }

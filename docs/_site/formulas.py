"""Converts the equations of docstrings, which are plain text, to LaTeX.

h~_t = tanh(W [c_t; s_t])    becomes    \\tilde{h}_t &= \\tanh(W [c_t; s_t])
"""

from __future__ import annotations

import re

_GREEK = {"alpha", "beta", "gamma", "epsilon"}
_OPERATORS = {"log", "exp", "min", "max", "tanh", "sin", "cos"}
_SUMS = {"sum": r"\sum", "prod": r"\prod", "product": r"\prod"}
_SYMBOLS = {
    "...": r"\dots ",
    "..": r"\dots ",
    "<=": r"\leq ",
    ">=": r"\geq ",
    "!=": r"\neq ",
    "->": r"\to ",
    "~": r"\sim ",
    "||": r"\parallel ",
    "{": r"\{",
    "}": r"\}",
    "#": r"\#",
    "&": r"\&",
    "%": r"\%",
}
_OVER = re.compile(r"\b(sum|prod|product|max|maximum|mean|argmax|softmax) over (.+?) of ")
# A name, with a tilde or primes, and a subscript: `h~_{t-1}`, `y_<t`, `log_variance_bz`, `s_1'`.
_NAME = re.compile(
    r"([A-Za-z]+(?:_[a-z]{4,})*)(~?)('*)(?:_(\{[^}]*\}|<?[A-Za-z0-9]{1,3}(?![A-Za-z0-9])))?('*)"
)
_POWER = re.compile(r" ?(?:\^|\*\*)\s*(\{[^}]*\}|\([^)]*\)|-?[\w.]+)")
_TOKEN = re.compile(r'"[^"]*"|`[^`]*`|\d+e-?\d+|[\d.]*\d|\.\.\.?|<=|>=|!=|->|\*\*|\|\||\S')
_SPACES = re.compile(r" {2,}")
# Three or more words in a row.
_PROSE = re.compile(r"(?<![\w(])(?:[a-z-]+ ){2,}[a-z]+(?![\w(\[~'])")
# What stands before an equation: `mean:  y[b] = ...`, `"dot":  e[b] = ...`.
_LABEL = re.compile(r'("[^"]*"|\w+(?: [<>=]+ \w+)?):\s+(?=\S.* [=~^] )')


def is_formula(lines: list[str]) -> bool:
    """Tests if an indented block is an equation, rather than code or a description in words."""
    text = " ".join(line.strip() for line in lines)
    if not re.search(r" (=|~|<=|>=|\^) |log P", text) or re.search("->|def |model, ", text):
        return False
    if len({_indent(line) for line in lines}) > 1 and any(map(_LABEL.match, map(str.strip, lines))):
        return False
    words = " ".join(_PROSE.findall(_OVER.sub(" ", text))).split()
    return len(words) < 0.4 * len(text.split())


def latex(lines: list[str]) -> list[str]:
    """Returns the lines of a `math` directive; the equality signs are aligned."""
    indent = min(map(_indent, lines))
    rows = []
    for line in lines:
        content = line.strip()
        if label := _LABEL.match(content):
            rows.append(f"{convert(label[1])}: & \\quad {convert(content[label.end() :])}")
            continue
        equality = re.search(r"(^|\s)=\s", content)
        is_continued = _indent(line) > indent and equality is None
        if equality is None:
            rows.append(("&\\quad " if is_continued else "& ") + convert(content))
        else:
            left, right = content[: equality.start()], content[equality.end() :]
            rows.append(f"{convert(left)} &= {convert(right)}")
    return [f"{row} \\\\" for row in rows[:-1]] + rows[-1:]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def convert(text: str) -> str:
    """Converts an expression."""
    result, end = [], 0
    while end < len(text):
        part, end = _next(text, end)
        result.append(part)
    return "".join(result).strip()


def _next(text: str, begin: int) -> tuple[str, int]:
    """Converts what begins at a position; also returns where it ends."""
    if found := _POWER.match(text, begin):
        return f"^{{{convert(found[1].strip('{}()'))}}}", found.end()
    if found := _SPACES.match(text, begin):
        return r"\quad ", found.end()
    if text[begin] == " ":
        return (r" \mid ", begin + 3) if text.startswith(" | ", begin) else (" ", begin + 1)
    if text.startswith("sqrt(", begin):
        end = _closing(text, begin + 4)
        return rf"\sqrt{{{convert(text[begin + 5 : end])}}}", end + 1
    if found := _OVER.match(text, begin):
        name, scope = found.groups()
        symbol = _SUMS.get(name, rf"\operatorname*{{{name}}}")
        return f"{symbol}_{{{convert(scope)}}} ", found.end()
    if found := _NAME.match(text, begin):
        return _name(text, found), found.end()
    found = _TOKEN.match(text, begin)
    token = found[0]
    if token.startswith('"'):
        return rf"\text{{{token}}}", found.end()
    if token.startswith("`"):
        code = token.strip("`").replace("_", r"\_")
        return rf"\texttt{{{code}}}", found.end()
    if token == "." and text[begin - 1 : begin] == " ":
        return r"\cdot ", found.end()
    return _SYMBOLS.get(token, token), found.end()


def _closing(text: str, begin: int) -> int:
    """Returns the position of the parenthesis that closes the one at `begin`."""
    depth = 0
    for position in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    raise ValueError(f"{text!r}: a parenthesis is not closed")


def _name(text: str, found: re.Match) -> str:
    name, tilde, primes, subscript, more_primes = found.groups()
    following = text[found.end() : found.end() + 1]
    is_called = following in ("(", "[") and following != ""
    if name in _GREEK or name in _OPERATORS:
        symbol = f"\\{name}"
    elif name in _SUMS and subscript:
        symbol = _SUMS[name]
    elif len(name) == 1:
        symbol = name
    elif subscript or is_called or tilde or primes or name.isupper():
        symbol = rf"\operatorname{{{name}}}".replace("_", r"\_")
    else:
        # A word between symbols.
        before = " " if text[: found.start()].endswith(" ") else ""
        after = " " if following == " " else ""
        return rf"\text{{{before}{name}{after}}}".replace("_", r"\_")
    if tilde:
        symbol = rf"\tilde{{{symbol}}}"
    if subscript:
        inner = subscript.strip("{}")
        symbol += f"{primes}_{{{convert(inner)}}}{more_primes}"
    else:
        symbol += primes + more_primes
    space = " " if symbol.startswith("\\") and symbol[-1].isalpha() else ""
    return symbol + space

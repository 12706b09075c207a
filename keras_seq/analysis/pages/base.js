/* Functions that the pages share: `make_page` puts them before the script of the page. */
const at = (id) => document.getElementById(id);
const create = (tag, text, name) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (name) node.className = name;
  return node;
};
const draw = (tag, attributes, text) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
const cut = (text, most) =>
  [...text].length > most ? [...text].slice(0, most - 1).join("") + "\u2026" : text;
const fixed = (value, digits) => value.toFixed(digits).replace("-", "\u2212");
const entitle = (title) => {
  document.title = title;
  document.querySelector("h1").textContent = title;
};
// Words, or characters in scripts without spaces.
const WORDS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|\s+|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+/gu;
const wordsOf = (text) => text.match(WORDS) || [];
/** Tells which words of a are in a longest common subsequence with b; null if too long. */
const shared = (a, b) => {
  if (a.length * b.length > 1e6) return null;
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    }
  }
  const kept = a.map(() => false);
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) { kept[i] = true; i += 1; j += 1; }
    else if (best[i + 1][j] >= best[i][j + 1]) i += 1;
    else j += 1;
  }
  return kept;
};
/** Returns an element with a text whose parts that another text lacks are marked. */
const marked = (tag, text, other, kind, split = wordsOf) => {
  const node = create(tag, undefined, "words");
  node.dir = "auto";
  const words = split(text), kept = shared(words.filter((word) => word.trim()),
    split(other).filter((word) => word.trim()));
  let place = 0;
  for (const word of words) {
    const same = !word.trim() || kept === null || kept[place];
    if (word.trim()) place += 1;
    node.append(same ? word : create("mark", word, kind));
  }
  return node;
};

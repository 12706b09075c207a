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

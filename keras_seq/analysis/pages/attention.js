/** Returns a picture of attention weights: a row for each token, a column for each source token. */
const SIZE = 30, MOST = 20;
const attentionMap = (line, values, say, numbers) => {
  const columns = line.source_tokens.length, rows = line.tokens.length;
  const longest = (tokens) => Math.max(...tokens.map((token) => [...cut(token, MOST)].length));
  const left = 24 + longest(line.tokens) * 8.5, top = 20 + longest(line.source_tokens) * 7.2;
  const slant = longest(line.source_tokens) * 4.5;
  const svg = draw("svg", { width: left + columns * SIZE + slant + 8, height: top + rows * SIZE + 8,
    role: "img", "aria-label": "attention as a grid of shades" });
  const names = line.source_tokens.map((token, s) => {
    const x = left + s * SIZE + SIZE / 2 + 4, y = top - 8;
    return draw("text", { x, y, transform: `rotate(-58 ${x} ${y})` }, cut(token, MOST));
  });
  const marks = line.tokens.map((token, t) => draw("text", { x: left - 8,
    y: top + t * SIZE + SIZE / 2 + 5, "text-anchor": "end" }, cut(token, MOST)));
  svg.append(...names, ...marks);
  values.forEach((value, i) => {
    const t = Math.floor(i / columns), s = i % columns, x = left + s * SIZE, y = top + t * SIZE;
    const cell = draw("rect", { class: "cell", x, y, width: SIZE - 1, height: SIZE - 1,
      "fill-opacity": (0.03 + 0.97 * value).toFixed(3) });
    cell.addEventListener("mouseenter", () => {
      names[s].classList.add("on");
      marks[t].classList.add("on");
      say(`${line.tokens[t]} attends to ${line.source_tokens[s]}: ` +
        value.toFixed(3));
    });
    cell.addEventListener("mouseleave", () => {
      names[s].classList.remove("on");
      marks[t].classList.remove("on");
    });
    svg.append(cell);
    if (numbers && value >= 0.005) {
      svg.append(draw("text", { class: value > 0.55 ? "value strong" : "value",
        x: x + SIZE / 2, y: y + SIZE / 2 + 4 }, value.toFixed(2).replace(/^0/, "")));
    }
  });
  svg.append(draw("rect", { class: "frame", x: left - 1, y: top - 1, width: columns * SIZE + 1,
    height: rows * SIZE + 1 }));
  return svg;
};
